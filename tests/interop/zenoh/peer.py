"""Zenoh's own Rust stack (PyPI eclipse-zenoh 1.10.2) as the other side of Sinew's tests.

usage: peer.py router|peer|client [--listen ENDPOINT]... [--connect ENDPOINT]... [--set PATH=JSON5]...

Endpoints are Zenoh's (tcp/127.0.0.1:0, udp/..., unixsock-stream/PATH); port 0 takes a free one.
Nothing is scouted. The first line says where it listens. Then it takes commands, one JSON object a
line, and writes events, one a line. A command {"do": NAME, "n": NUMBER, ...} is answered by an
event {"event": "done"|"error", "n": NUMBER, ...}; what it leads to may come before that. The end of
the input ends the program.

| command | arguments, of which those with ? may be absent |
|---|---|
| subscribe | id, key, count?: true counts instead of reporting, see below; pause?: seconds a sample |
| publisher | id, key, encoding?, priority? (1..7), block?, express?, reliable? |
| put | id (of a publisher), payload, encoding?, attachment?, timestamp?, source? (a number) |
| delete | id, attachment?, timestamp?, source? |
| burst | ids (of publishers, in turns), count, size: payloads begin with their number, u32 LE |
| counted | id: what a counting subscriber has seen |
| matching | id: whether a publisher has subscribers |
| queryable | id, key, complete?, answers: see below, hold?: keep queries until "release" |
| release | id: drops the queries that a queryable has held, which ends them |
| get | id, key, parameters?, target?, consolidation?, timeout? (s), payload?, encoding?, attachment?, source?, priority?, block?, express?, any_key? |
| undeclare | id |
| info | |
| close | closes the session, and ends the program |

Bytes are hexadecimal, or {"fill": LENGTH, "seed": S} for a long pattern. A timestamp is [NTP64,
hexadecimal id]. An answer is {"put": bytes, key?, encoding?, attachment?, timestamp?}, {"delete":
true, key?, ...} or {"error": bytes, encoding?}; "echo": true puts the query's payload. It travels
as its query did.

Events besides done and error: ready, sample, query, reply, end (of a get), closed.
"""

import argparse
import binascii
import json
import os
import sys
import threading
import time

import zenoh

OUT = threading.Lock()
LONG = 256  # bytes that are reported whole; of longer payloads length, CRC-32 and the first ones


def say(event, **fields):
    line = json.dumps({"event": event, **fields})
    with OUT:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def pattern(length, seed):
    """Byte n of a long payload; the Rust side makes the same."""
    block = bytes((n * 7 + seed) & 0xFF for n in range(256))
    whole = bytearray()
    for n in range((length + 255) // 256):
        whole += bytes([n & 0xFF]) + block[1:]
    return bytes(whole[:length])


def from_wire(value):
    if isinstance(value, dict):
        return pattern(value["fill"], value["seed"])
    return binascii.unhexlify(value)


def to_wire(data):
    if data is None:
        return None
    data = bytes(data)
    if len(data) <= LONG:
        return data.hex()
    return {"len": len(data), "crc": binascii.crc32(data), "head": data[:16].hex()}


def timestamp(value):
    seconds, fraction = value[0] >> 32, value[0] & 0xFFFFFFFF
    # Exact for fractions that are whole nanoseconds.
    time = zenoh.NTP64(seconds, fraction * 1_000_000_000 >> 32)
    return zenoh.Timestamp(time, binascii.unhexlify(value[1]))


def options(command, *names):
    """The arguments of a call of Zenoh's API."""
    made = {}
    for name in names:
        value = command.get(name)
        if value is None:
            continue
        if name in ("attachment", "payload"):
            made[name] = from_wire(value)
        elif name == "timestamp":
            made[name] = timestamp(value)
        elif name == "priority":
            made[name] = PRIORITIES[value]
        elif name == "block":
            made["congestion_control"] = (
                zenoh.CongestionControl.BLOCK if value else zenoh.CongestionControl.DROP
            )
        elif name == "reliable":
            made["reliability"] = (
                zenoh.Reliability.RELIABLE if value else zenoh.Reliability.BEST_EFFORT
            )
        elif name == "target":
            made[name] = getattr(zenoh.QueryTarget, value)
        elif name == "consolidation":
            made[name] = getattr(zenoh.ConsolidationMode, value)
        else:
            made[name] = value
    return made


PRIORITIES = {
    1: zenoh.Priority.REAL_TIME,
    2: zenoh.Priority.INTERACTIVE_HIGH,
    3: zenoh.Priority.INTERACTIVE_LOW,
    4: zenoh.Priority.DATA_HIGH,
    5: zenoh.Priority.DATA,
    6: zenoh.Priority.DATA_LOW,
    7: zenoh.Priority.BACKGROUND,
}


def number_of(priority):
    return next(n for n, each in PRIORITIES.items() if each == priority)


def source_of(thing):
    info = thing.source_info
    if info is None:
        return None
    return [str(info.source_id.zid), info.source_id.eid, info.source_sn]


def sample_of(sample):
    stamp = sample.timestamp
    return {
        "key": str(sample.key_expr),
        "kind": "put" if sample.kind == zenoh.SampleKind.PUT else "delete",
        "payload": to_wire(sample.payload),
        "encoding": str(sample.encoding),
        "attachment": to_wire(sample.attachment),
        "timestamp": stamp
        and [int(str(stamp.get_time_as_ntp64())), bytes(stamp.get_id()).hex()],
        "priority": number_of(sample.priority),
        "block": sample.congestion_control == zenoh.CongestionControl.BLOCK,
        "express": sample.express,
        "source": source_of(sample),
    }


class Counting:
    """What a subscriber has seen: all numbers of a key, in order, or not."""

    def __init__(self, pause):
        self.pause = pause
        self.received = 0
        self.missing = 0
        self.backwards = 0
        self.next = {}

    def __call__(self, sample):
        if self.pause:
            time.sleep(self.pause)
        key = str(sample.key_expr)
        number = int.from_bytes(bytes(sample.payload)[:4], "little")
        expected = self.next.get(key, 0)
        if number < expected:
            self.backwards += 1
        else:
            self.missing += number - expected
            self.next[key] = number + 1
        self.received += 1


class Peer:
    def __init__(self, session):
        self.session = session
        self.things = {}
        self.counts = {}
        self.held = {}

    def do_subscribe(self, command):
        name = command["id"]
        if command.get("count") or command.get("pause"):
            handler = self.counts[name] = Counting(command.get("pause", 0))
        else:

            def handler(sample):
                say("sample", id=name, **sample_of(sample))

        self.things[name] = self.session.declare_subscriber(command["key"], handler)

    def do_counted(self, command):
        counting = self.counts[command["id"]]
        return {
            "received": counting.received,
            "missing": counting.missing,
            "backwards": counting.backwards,
        }

    def do_publisher(self, command):
        self.things[command["id"]] = self.session.declare_publisher(
            command["key"],
            **options(command, "encoding", "priority", "block", "express", "reliable"),
        )

    def source(self, command, thing):
        if command.get("source") is None:
            return {}
        return {"source_info": zenoh.SourceInfo(thing.id, command["source"])}

    def do_put(self, command):
        publisher = self.things[command["id"]]
        publisher.put(
            from_wire(command["payload"]),
            **options(command, "encoding", "attachment", "timestamp"),
            **self.source(command, publisher),
        )

    def do_delete(self, command):
        publisher = self.things[command["id"]]
        publisher.delete(
            **options(command, "attachment", "timestamp"),
            **self.source(command, publisher),
        )

    def do_burst(self, command):
        publishers = [self.things[name] for name in command["ids"]]
        rest = bytes(max(command["size"] - 4, 0))
        for number in range(command["count"]):
            payload = number.to_bytes(4, "little") + rest
            for publisher in publishers:
                publisher.put(payload)

    def do_matching(self, command):
        return {"matching": self.things[command["id"]].matching_status.matching}

    def do_queryable(self, command):
        name = command["id"]
        self.held[name] = []

        def answer(query):
            for each in command.get("answers", []):
                self.answer(query, each)
            held = command.get("hold")
            if held:
                self.held[name].append(query)
            # Who sees this may release what is held.
            say(
                "query",
                id=name,
                key=str(query.key_expr),
                parameters=str(query.parameters),
                payload=to_wire(query.payload),
                encoding=query.encoding and str(query.encoding),
                attachment=to_wire(query.attachment),
                source=source_of(query),
                any_key=query.accepts_replies() == zenoh.ReplyKeyExpr.ANY,
            )
            if not held:
                query.drop()

        self.things[name] = self.session.declare_queryable(
            command["key"], answer, **options(command, "complete")
        )

    def answer(self, query, each):
        key = each.get("key", str(query.key_expr))
        sample = options(each, "attachment", "timestamp")
        encoding = options(each, "encoding")
        if each.get("delete"):
            query.reply_del(key, **sample)
        elif "error" in each:
            query.reply_err(from_wire(each["error"]), **encoding)
        else:
            payload = query.payload if each.get("echo") else from_wire(each["put"])
            query.reply(key, payload, **sample, **encoding)

    def do_release(self, command):
        for query in self.held[command["id"]]:
            query.drop()
        self.held[command["id"]] = []

    def do_get(self, command):
        name = command["id"]
        parameters = command.get("parameters")
        selector = command["key"] + (f"?{parameters}" if parameters else "")
        arguments = options(
            command,
            *("target", "consolidation", "timeout", "payload", "encoding", "attachment"),
            *("priority", "block", "express"),
        )
        arguments.update(self.source(command, self.session))
        if command.get("any_key"):
            arguments["accept_replies"] = zenoh.ReplyKeyExpr.ANY
        replies = self.session.get(
            selector, zenoh.handlers.FifoChannel(100_000), **arguments
        )

        def report():
            for reply in replies:
                if reply.ok is not None:
                    say("reply", id=name, **sample_of(reply.ok))
                else:
                    say(
                        "reply",
                        id=name,
                        kind="error",
                        payload=to_wire(reply.err.payload),
                        encoding=str(reply.err.encoding),
                    )
            say("end", id=name)

        threading.Thread(target=report, daemon=True).start()

    def do_undeclare(self, command):
        self.things.pop(command["id"]).undeclare()

    def do_info(self, _command):
        info = self.session.info
        return {
            "zid": str(info.zid()),
            "routers": [str(zid) for zid in info.routers_zid()],
            "peers": [str(zid) for zid in info.peers_zid()],
            "links": [
                {"src": str(link.src), "dst": str(link.dst), "mtu": link.mtu}
                for link in info.links()
            ],
            "transports": [
                {"zid": str(each.zid), "whatami": str(each.whatami), "qos": each.is_qos}
                for each in info.transports()
            ],
        }


def listening(endpoint):
    """An endpoint with the port that the system chose for port 0, from the sockets of this process."""
    kind, address = endpoint.split("/", 1)
    if kind not in ("tcp", "udp") or not address.endswith(":0"):
        return endpoint
    mine = set()
    for fd in os.listdir("/proc/self/fd"):
        try:
            mine.add(os.readlink(f"/proc/self/fd/{fd}"))
        except OSError:
            pass  # closed meanwhile
    with open(f"/proc/self/net/{kind}") as table:
        for row in list(table)[1:]:
            fields = row.split()
            state, far, inode = fields[3], fields[2], fields[9]
            free = state == "0A" if kind == "tcp" else far.endswith(":0000")
            if free and f"socket:[{inode}]" in mine:
                port = int(fields[1].rsplit(":", 1)[1], 16)
                return f"{kind}/{address[:-1]}{port}"
    raise RuntimeError(f"no socket listens at {endpoint}")


def config(arguments):
    made = zenoh.Config()
    settings = {
        "mode": json.dumps(arguments.mode),
        "listen/endpoints": json.dumps(arguments.listen),
        "connect/endpoints": json.dumps(arguments.connect),
        "scouting/multicast/enabled": "false",
        "scouting/gossip/enabled": "false",
        # Else opening waits half a second for what scouting might find.
        "scouting/delay": "0",
    }
    for setting in arguments.set:
        path, value = setting.split("=", 1)
        settings[path] = value
    for path, value in settings.items():
        made.insert_json5(path, value)
    return made


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=("router", "peer", "client"))
    for name in ("--listen", "--connect", "--set"):
        parser.add_argument(name, action="append", default=[])
    arguments = parser.parse_args()
    zenoh.init_log_from_env_or("error")
    started = time.monotonic()
    session = zenoh.open(config(arguments))
    peer = Peer(session)
    say(
        "ready",
        zid=str(session.zid()),
        endpoints=[listening(endpoint) for endpoint in arguments.listen],
        opened_in_s=round(time.monotonic() - started, 3),
    )
    for line in sys.stdin:
        command = json.loads(line)
        number = command.get("n")
        if command["do"] == "close":
            session.close()
            say("closed", n=number)
            break
        try:
            result = getattr(peer, "do_" + command["do"])(command)
            say("done", n=number, **(result or {}))
        except Exception as error:
            say("error", n=number, error=f"{type(error).__name__}: {error}")
    # Threads of the stack may still run: nothing of it is worth waiting for.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
