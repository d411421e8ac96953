"""Kafka's clients as machines: they take events and act through a port, without sockets or clocks.

A `Client` owns the connections and the metadata of the cluster. A producer, a consumer or an admin
is a machine attached to one; several may share it. Whoever hosts a client (the simulator, a shell
over sockets) passes events on and calls `end_of_tick` after each bunch of them, and after whatever
the program itself asked for, since that is where requests leave::

    config = producer_config({"bootstrap.servers": "node-1:9092,node-2:9092", "linger.ms": 0})
    client = Client(wires, config.client, random=Random(7), trace=trace)
    producer = ProducerMachine(client, config)

    ticket = producer.send("orders", b"paid", key=b"order-1", now_ms=now_ms, then=on_outcome)
    client.end_of_tick(now_ms)

    client.on_link_opened(link, now_ms)              # events of the host
    client.on_link_closed(link, "refused", now_ms)
    client.on_answer(link, frame, now_ms)
    client.on_timer(now_ms)                          # what `wires.arm(deadline_ms)` asked for
    client.end_of_tick(now_ms)

`wires` is a `ClientWires`: connect, send and disconnect of `core.wire.links.Wires`, and `arm`.
Construct a client before its host calls anything, `client.close()` drops every connection.

The producer calls `on_outcome(ticket, now_ms)` once. `ticket.outcome` is then `SendOk(offset)` (no
offset with acks=0), `SendRefused(error, reason)`, which is certainly not in the log, or
`SendUnknown(error, reason)`, which may be there. A `send` that Java would block gives a ticket with
`is_blocked`: a program with one thread then sends nothing more until it is not; `max.block.ms` ends
it. `producer.flush(now_ms)` sends without lingering, `producer.pending` counts open tickets,
`producer.close(now_ms)` takes no more and sends the rest, `producer.abort(now_ms)` gives it up and
tells every ticket so; only then `client.close()`. Its trace events are in `client.events`.

A consumer gives what it has, and says when it has something::

    config = consumer_config({"bootstrap.servers": "node-1:9092", "auto.offset.reset": "earliest"})
    consumer = ConsumerMachine(Client(wires, config.client, random=Random(8)), config)
    consumer.on_ready = lambda now_ms: ...           # poll will give records or raise
    consumer.assign([TopicPartition("orders", 0)])
    consumer.seek(TopicPartition("orders", 0), 1_000, leader_epoch=5)
    for record in consumer.poll(now_ms): ...         # partition, offset, leader_epoch, key, value

`poll` raises ConsumerError (LogTruncationError, NoOffset, OutOfRange, ...) as Java does; what it
raised is then settled by `seek`. `consumer.position(partition)` is the next offset to be read.

A member of a group owns partitions until they are revoked; `GroupConsumerMachine` reads and commits
them. Both are for one program and are driven by the same client::

    config = group_config({"bootstrap.servers": "node-1:9092", "group.id": "mail"})
    client = Client(wires, config.consumer.client, random=Random(9))
    member = GroupMember(client, config, ["orders"], listener)
    member.commit({TopicPartition("orders", 0): OffsetAndMetadata(1_001)}, then, now_ms=now_ms)
    member.leave(now_ms)

An admin asks questions; each is one small function that makes the request and reads the answer::

    admin = AdminMachine(client)
    admin.ask(create_topic("orders", partitions=1, replication_factor=3), then, now_ms=now_ms)
    admin.ask(log_end_offset(TopicPartition("orders", 0), broker_id=2), then, now_ms=now_ms)

`then(result, now_ms)` gets what the function promises, or `Failed(reason)`. Any question can be
put to another node: `describe_topic("orders").to(TheBroker(2))`, or `.to(TheNode(Address(host,
port)))` for a node that the metadata does not name.

Where to find them: `client.client`, `client.producer.{config,producer,outcome}`,
`client.consumer.{config,consumer,errors}`, `client.group.{config,member,group_consumer}`,
`client.admin.{admin,topics,offsets,cluster,configs,groups}`,
and `client.shells.blocking_clients` for programs with real sockets.
"""
