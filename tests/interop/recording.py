"""Reads a recording with the readers of PyPI `mcap` and `mcap-protobuf-support`.

Writes one line a message: topic, sequence, time in nanoseconds, and the message as JSON. Fails where a message
cannot be decoded, or where a file or FIFO has no end. With --cut, it has none: what is there is read as a stream.
"""

import sys

from google.protobuf.json_format import MessageToJson
from mcap.exceptions import EndOfFile
from mcap.reader import NonSeekingReader, make_reader
from mcap.records import Channel, Message, Schema
from mcap.stream_reader import StreamReader
from mcap_protobuf.decoder import DecoderFactory


def whole(file):
    """By the indexes at the end, checksums included; a FIFO as it comes, which is looked at once."""
    reader = make_reader(file, validate_crcs=True, decoder_factories=[DecoderFactory()])
    is_file = not isinstance(reader, NonSeekingReader)
    statistics = reader.get_summary().statistics if is_file else None
    count = 0
    for _, channel, message, decoded in reader.iter_decoded_messages():
        count += 1
        yield channel, message, decoded
    assert not is_file or count == statistics.message_count, (count, statistics)


def cut(file):
    """From the beginning, as far as it goes."""
    decoders = DecoderFactory()
    schemas, channels = {}, {}
    try:
        for record in StreamReader(file, validate_crcs=True).records:
            if isinstance(record, Schema):
                schemas[record.id] = record
            elif isinstance(record, Channel):
                channels[record.id] = record
            elif isinstance(record, Message):
                channel = channels[record.channel_id]
                decode = decoders.decoder_for(channel.message_encoding, schemas[channel.schema_id])
                yield channel, record, decode(record.data)
    except EndOfFile:
        return
    raise SystemExit("the file has an end")


read = cut if sys.argv[1] == "--cut" else whole
with open(sys.argv[-1], "rb") as file:
    for channel, message, decoded in read(file):
        text = MessageToJson(decoded, indent=None, preserving_proto_field_name=True)
        print(channel.topic, message.sequence, message.log_time, text)
