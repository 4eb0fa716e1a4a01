-- Shows calls of pw_rpc in Wireshark and tshark: frames of HDLC, the packets in them, and, with a descriptor
-- set, the names of services, methods and fields.
--
--   wireshark -X lua_script:tools/wireshark/sinew.lua FILE
--   tshark -X lua_script:tools/wireshark/sinew.lua -o pw_rpc.descriptors:FILE -r FILE
--
-- or copy it into the folder of personal Lua plugins (Help, About, Folders). It takes up
--
--   link type USER0   a packet without framing: what `sinew capture` writes
--   link type USER1   bytes of a line with HDLC, in records of any size
--   TCP port 33000    a stream with HDLC; other ports by preference or by Decode As
--   UDP port 33000    a packet in each datagram; the same
--
-- It keeps to Lua 5.2, and to what Lua 5.4 has as well. Whatever comes is shown and never an error of the
-- script: bytes are read out of Lua strings, where reading past the end gives nothing.

local rpc = Proto("pw_rpc", "pw_rpc")
local hdlc = Proto("pigweed_hdlc", "Pigweed HDLC")
local line = Proto("pigweed_hdlc_line", "Pigweed HDLC on a line")

local TYPES = {
  [0] = "REQUEST", [1] = "RESPONSE", [2] = "CLIENT_STREAM", [3] = "SERVER_STREAM_END (no longer used)",
  [4] = "CLIENT_ERROR", [5] = "SERVER_ERROR", [6] = "CANCEL (no longer used)", [7] = "SERVER_STREAM",
  [8] = "CLIENT_REQUEST_COMPLETION",
}
local REQUEST, RESPONSE, CLIENT_ERROR, SERVER_ERROR = 0, 1, 4, 5
local STATUSES = {
  [0] = "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
  "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED",
  "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
}
-- Calls that a server has opened by itself, and those of peers that know no call ids.
local OPEN_CALLS = { [0] = true, [4294967295] = true }
local RPC_ADDRESS = 82
local ADDRESSES = { [RPC_ADDRESS] = "RPC", [1] = "log" }

rpc.prefs.descriptors = Pref.string("Descriptor set", "",
  "A FileDescriptorSet, which has the names: `sinew describe ENDPOINT --descriptor-set FILE`, "
  .. "or `protoc --include_imports --descriptor_set_out=FILE x.proto`")
rpc.prefs.udp_ports = Pref.range("UDP ports", "33000", "A packet in each datagram", 65535)
hdlc.prefs.tcp_ports = Pref.range("TCP ports", "33000", "Streams of frames", 65535)

local R = {
  type = ProtoField.uint32("pw_rpc.type", "Type", base.DEC, TYPES),
  channel = ProtoField.uint32("pw_rpc.channel", "Channel"),
  service = ProtoField.uint32("pw_rpc.service", "Service", base.HEX),
  method = ProtoField.uint32("pw_rpc.method", "Method", base.HEX),
  name = ProtoField.string("pw_rpc.name", "Name"),
  status = ProtoField.uint32("pw_rpc.status", "Status", base.DEC, STATUSES),
  call = ProtoField.uint32("pw_rpc.call", "Call"),
  payload = ProtoField.bytes("pw_rpc.payload", "Payload"),
  field = ProtoField.string("pw_rpc.payload.field", "Field"),
  unknown = ProtoField.bytes("pw_rpc.unknown", "Unknown field"),
  request_in = ProtoField.framenum("pw_rpc.request_in", "Request in", base.NONE, frametype.REQUEST),
  response_in = ProtoField.framenum("pw_rpc.response_in", "Response in", base.NONE, frametype.RESPONSE),
  time = ProtoField.relative_time("pw_rpc.time", "Time since the request"),
}
rpc.fields = { R.type, R.channel, R.service, R.method, R.name, R.status, R.call, R.payload, R.field, R.unknown,
  R.request_in, R.response_in, R.time }

local RX = {
  malformed = ProtoExpert.new("pw_rpc.malformed", "No packet of pw_rpc", expert.group.MALFORMED,
    expert.severity.ERROR),
  refused = ProtoExpert.new("pw_rpc.refused", "Peers drop this packet", expert.group.PROTOCOL,
    expert.severity.WARN),
  failed = ProtoExpert.new("pw_rpc.failed", "The call failed", expert.group.RESPONSE_CODE,
    expert.severity.NOTE),
  payload = ProtoExpert.new("pw_rpc.payload.malformed", "No such message", expert.group.MALFORMED,
    expert.severity.ERROR),
  names = ProtoExpert.new("pw_rpc.descriptors_unread", "No names", expert.group.UNDECODED,
    expert.severity.WARN),
}
rpc.experts = { RX.malformed, RX.refused, RX.failed, RX.payload, RX.names }

local H = {
  address = ProtoField.uint64("pigweed_hdlc.address", "Address"),
  control = ProtoField.uint8("pigweed_hdlc.control", "Control", base.HEX),
  fcs = ProtoField.uint32("pigweed_hdlc.fcs", "Frame check sequence", base.HEX),
  good = ProtoField.bool("pigweed_hdlc.fcs_good", "Good"),
  data = ProtoField.bytes("pigweed_hdlc.data", "Data"),
}
hdlc.fields = { H.address, H.control, H.fcs, H.good, H.data }

local HX = {
  fcs = ProtoExpert.new("pigweed_hdlc.fcs_bad", "The check sequence is wrong", expert.group.CHECKSUM,
    expert.severity.ERROR),
  escape = ProtoExpert.new("pigweed_hdlc.bad_escape", "A wrong escape", expert.group.MALFORMED,
    expert.severity.ERROR),
  needless = ProtoExpert.new("pigweed_hdlc.needless_escape", "A needless escape, which not every peer takes",
    expert.group.PROTOCOL, expert.severity.WARN),
  short = ProtoExpert.new("pigweed_hdlc.too_short", "Too short for a frame", expert.group.MALFORMED,
    expert.severity.ERROR),
  address = ProtoExpert.new("pigweed_hdlc.bad_address", "The address has no end", expert.group.MALFORMED,
    expert.severity.ERROR),
  noise = ProtoExpert.new("pigweed_hdlc.noise", "Bytes of no frame", expert.group.MALFORMED,
    expert.severity.WARN),
}
hdlc.experts = { HX.fcs, HX.escape, HX.needless, HX.short, HX.address, HX.noise }

local INTERFACE = Field.new("frame.interface_id")

-- Numbers

local POWERS = { [0] = 1 }
for at = 1, 32 do
  POWERS[at] = POWERS[at - 1] * 2
end
local WORD = POWERS[32]

-- The varint at a position: its low and high 32 bits and the position behind it; or nil and what is wrong.
-- `last` is the last position that belongs to the message.
local function varint(bytes, at, last)
  local low, high = 0, 0
  for count = 0, 9 do
    local byte = at <= last and bytes:byte(at)
    if not byte then
      return nil, "a varint is cut off"
    end
    local part, shift = byte % 128, 7 * count
    if shift < 28 then
      low = low + part * POWERS[shift]
    elseif shift == 28 then
      low = low + part % 16 * POWERS[28]
      high = math.floor(part / 16)
    elseif shift < 63 then
      high = high + part * POWERS[shift - 32]
    elseif part <= 1 then
      high = high + part * POWERS[31]
    else
      return nil, "a varint is larger than 64 bits"
    end
    at = at + 1
    if byte < 128 then
      return low, high, at
    end
  end
  return nil, "a varint has more than 10 bytes"
end

-- A little-endian number of 32 bits.
local function fixed32(bytes, at)
  local a, b, c, d = bytes:byte(at, at + 3)
  return a + b * 256 + c * 65536 + d * 16777216
end

-- The id of a service's or method's name.
local function id(name)
  local hash, factor = #name, 65599
  for at = 1, #name do
    hash = (hash + factor * name:byte(at)) % WORD
    factor = factor * 65599 % WORD
  end
  return hash
end

-- CRC-32, as in zlib; bit operations give signed numbers, `%` makes them unsigned.
local bits = bit or bit32
local CRC = {}
for byte = 0, 255 do
  local value = byte
  for _ = 1, 8 do
    local half = math.floor(value / 2)
    value = value % 2 == 1 and bits.bxor(half, 0xEDB88320) % WORD or half
  end
  CRC[byte] = value
end

local function crc32(bytes, last)
  local crc = 0xFFFFFFFF
  for at = 1, last do
    local index = bits.bxor(crc % 256, bytes:byte(at)) % 256
    crc = bits.bxor(math.floor(crc / 256), CRC[index]) % WORD
  end
  return WORD - 1 - crc
end

-- Messages

local VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

-- The field at a position; or nil and what is wrong. `at` to `stop` is all of it, `value` where its value
-- begins; `low` and `high` are its number or its length.
local function field_at(bytes, at, last)
  local key, high, value = varint(bytes, at, last)
  if not key then
    return nil, high
  end
  local field = { at = at, value = value, number = math.floor(key / 8), wire = key % 8, low = 0, high = 0 }
  if field.number == 0 or high ~= 0 then
    return nil, "there is no such field number"
  end
  if field.wire == VARINT then
    field.low, field.high, field.stop = varint(bytes, value, last)
    if not field.low then
      return nil, field.high
    end
  elseif field.wire == FIXED64 then
    field.stop = value + 8
  elseif field.wire == FIXED32 then
    field.stop = value + 4
  elseif field.wire == BYTES then
    field.low, field.high, field.value = varint(bytes, value, last)
    if not field.low then
      return nil, field.high
    end
    field.stop = field.value + field.low + field.high * WORD
  else
    return nil, "there is no wire type " .. string.format("%d", field.wire)
  end
  if field.stop > last + 1 then
    return nil, "a field is cut off"
  end
  return field
end

-- Calls `each` with every field; what is wrong, where something is.
local function fields(bytes, at, last, each)
  while at <= last do
    local field, wrong = field_at(bytes, at, last)
    if not field then
      return wrong, at
    end
    wrong = each(field)
    if wrong then
      return wrong, at
    end
    at = field.stop
  end
end

-- Names, out of a descriptor set

local names = { services = {}, messages = {}, enums = {}, wrong = nil }

local function text_of(bytes, field)
  return bytes:sub(field.value, field.stop - 1)
end

local function read_enum(bytes, field, scope)
  local name, values = "", {}
  fields(bytes, field.value, field.stop - 1, function(part)
    if part.number == 1 then
      name = text_of(bytes, part)
    elseif part.number == 2 and part.wire == BYTES then
      local label, number = "", 0
      fields(bytes, part.value, part.stop - 1, function(of)
        if of.number == 1 then
          label = text_of(bytes, of)
        elseif of.number == 2 then
          number = of.low
        end
      end)
      values[number] = label
    end
  end)
  names.enums[scope .. "." .. name] = values
end

local function read_field(bytes, field)
  local known, number = { name = "", type = 0, message = "" }, 0
  fields(bytes, field.value, field.stop - 1, function(part)
    if part.number == 1 then
      known.name = text_of(bytes, part)
    elseif part.number == 3 then
      number = part.low
    elseif part.number == 5 then
      known.type = part.low
    elseif part.number == 6 then
      known.message = text_of(bytes, part)
    end
  end)
  return number, known
end

local function read_message(bytes, field, scope, depth)
  local name, known, inner = "", {}, {}
  fields(bytes, field.value, field.stop - 1, function(part)
    if part.wire ~= BYTES then
      return
    end
    if part.number == 1 then
      name = text_of(bytes, part)
    elseif part.number == 2 then
      local number, of = read_field(bytes, part)
      known[number] = of
    elseif part.number == 3 or part.number == 4 then
      table.insert(inner, part)
    end
  end)
  name = scope .. "." .. name
  names.messages[name] = known
  for _, part in ipairs(inner) do
    if part.number == 4 then
      read_enum(bytes, part, name)
    elseif depth < 32 then
      read_message(bytes, part, name, depth + 1)
    end
  end
end

local function read_service(bytes, field, scope)
  local name, methods = "", {}
  fields(bytes, field.value, field.stop - 1, function(part)
    if part.number == 1 then
      name = text_of(bytes, part)
    elseif part.number == 2 and part.wire == BYTES then
      local method = { name = "", request = "", response = "" }
      fields(bytes, part.value, part.stop - 1, function(of)
        if of.number == 1 then
          method.name = text_of(bytes, of)
        elseif of.number == 2 then
          method.request = text_of(bytes, of)
        elseif of.number == 3 then
          method.response = text_of(bytes, of)
        end
      end)
      methods[id(method.name)] = method
    end
  end)
  name = (scope .. "." .. name):sub(2)
  names.services[id(name)] = { name = name, methods = methods }
end

local function read_file(bytes, file)
  local package, parts = "", {}
  fields(bytes, file.value, file.stop - 1, function(part)
    if part.number == 2 then
      package = "." .. text_of(bytes, part)
    elseif part.wire == BYTES and part.number >= 4 and part.number <= 6 then
      table.insert(parts, part)
    end
  end)
  for _, part in ipairs(parts) do
    if part.number == 4 then
      read_message(bytes, part, package, 0)
    elseif part.number == 5 then
      read_enum(bytes, part, package)
    else
      read_service(bytes, part, package)
    end
  end
end

-- Reads the names anew; `names.wrong` says why there are none.
local function read_names(path)
  names = { services = {}, messages = {}, enums = {}, wrong = nil }
  if path == "" then
    return
  end
  local file, wrong = io.open(path, "rb")
  local bytes = file and file:read("*a")
  if file then
    file:close()
  end
  if not bytes then
    names.wrong = wrong or path .. " cannot be read"
    return
  end
  local count = 0
  local broken = fields(bytes, 1, #bytes, function(part)
    if part.number ~= 1 or part.wire ~= BYTES then
      return "there is something else than files in it"
    end
    count = count + 1
    read_file(bytes, part)
  end)
  if broken or count == 0 then
    names.wrong = path .. " is no descriptor set: " .. (broken or "it is empty")
  end
end

-- Payloads

local DOUBLE, FLOAT, INT64, UINT64, INT32, F64, F32, BOOL, STRING, MESSAGE, BLOB, UINT32, ENUM, SF32, SF64, SINT32, SINT64 =
  1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18
-- How each type is on the wire.
local WIRES = {
  [DOUBLE] = FIXED64, [FLOAT] = FIXED32, [INT64] = VARINT, [UINT64] = VARINT, [INT32] = VARINT,
  [F64] = FIXED64, [F32] = FIXED32, [BOOL] = VARINT, [STRING] = BYTES, [MESSAGE] = BYTES, [BLOB] = BYTES,
  [UINT32] = VARINT, [ENUM] = VARINT, [SF32] = FIXED32, [SF64] = FIXED64, [SINT32] = VARINT,
  [SINT64] = VARINT,
}
local DEEPEST = 32
local LONGEST_TEXT = 120

local function printable(text)
  return (text:gsub("%c", function(char)
    return string.format("\\x%02x", char:byte())
  end))
end

local function cut(text)
  -- Not within a character of UTF-8.
  local stop = LONGEST_TEXT
  while stop > 0 and #text > LONGEST_TEXT and (text:byte(stop + 1) or 0) >= 128 and text:byte(stop + 1) < 192 do
    stop = stop - 1
  end
  return #text > LONGEST_TEXT and text:sub(1, stop) .. "…" or text
end

local function signed(low, high)
  return tostring(Int64.new(low, high))
end

local function zigzag(low, high)
  local half = UInt64.new(low, high):rshift(1)
  return low % 2 == 0 and tostring(half) or "-" .. tostring(half + 1)
end

-- One value that is no message, as text. `range` is where it lies.
local function value_text(kind, known, low, high, range)
  if kind == DOUBLE or kind == FLOAT then
    return string.format("%.9g", range:le_float())
  elseif kind == INT64 or kind == INT32 then
    return signed(low, high)
  elseif kind == SINT64 or kind == SINT32 then
    return zigzag(low, high)
  elseif kind == SF32 then
    return string.format("%d", range:le_int())
  elseif kind == SF64 then
    return tostring(range:le_int64())
  elseif kind == F32 then
    return string.format("%d", range:le_uint())
  elseif kind == F64 then
    return tostring(range:le_uint64())
  elseif kind == BOOL then
    return (low ~= 0 or high ~= 0) and "true" or "false"
  elseif kind == ENUM then
    local label = (names.enums[known.message] or {})[low]
    return label or signed(low, high)
  end
  return tostring(UInt64.new(low, high))
end

local function bytes_text(range)
  if not range then
    return '""'
  end
  local hex = range:bytes():tohex(true)
  return #hex > LONGEST_TEXT and hex:sub(1, LONGEST_TEXT) .. "…" or hex
end

local show_message

-- One field in the tree; gives it as text, and what is wrong.
local function show_field(tvb, bytes, field, known, tree, depth)
  local all = tvb(field.at - 1, field.stop - field.at)
  local label = known and known.name or "#" .. string.format("%d", field.number)
  local kind = known and WIRES[known.type] and known.type
  local length = field.stop - field.value
  local range = length > 0 and tvb(field.value - 1, length) or nil
  local function add(text)
    text = label .. ": " .. text
    local item = tree:add(R.field, all, text)
    item:set_text(text)
    return text, nil, item
  end
  if not kind or (WIRES[kind] ~= field.wire and field.wire ~= BYTES) then
    if kind then
      return nil, label .. " has the wire type " .. string.format("%d", field.wire)
    elseif field.wire == VARINT then
      return add(tostring(UInt64.new(field.low, field.high)))
    end
    return add(bytes_text(range))
  end
  if kind == MESSAGE then
    local item = tree:add(R.field, all, label)
    local text, wrong = show_message(tvb, bytes, field.value, field.stop - 1, item, known.message, depth + 1)
    text = label .. ": {" .. text .. "}"
    item:set_text(cut(text))
    return text, wrong
  elseif kind == STRING then
    return add(cut('"' .. (range and printable(range:string(ENC_UTF_8)) or "") .. '"'))
  elseif kind == BLOB then
    return add(bytes_text(range))
  elseif field.wire ~= BYTES then
    return add(value_text(kind, known, field.low, field.high, range))
  end
  -- Many numbers, one behind the other.
  local values, at, last = {}, field.value, field.stop - 1
  while at <= last do
    local low, high, stop = 0, 0, at + (WIRES[kind] == FIXED64 and 8 or 4)
    if WIRES[kind] == VARINT then
      low, high, stop = varint(bytes, at, last)
      if not low then
        return nil, label .. ": " .. high
      end
    elseif WIRES[kind] == BYTES then
      return add(bytes_text(range))
    end
    if stop > last + 1 then
      return nil, label .. " is cut off"
    end
    table.insert(values, value_text(kind, known, low, high, tvb(at - 1, stop - at)))
    at = stop
  end
  return add(cut("[" .. table.concat(values, ", ") .. "]"))
end

-- A message in the tree, of this name or of none that is known; gives it as text, and what is wrong.
show_message = function(tvb, bytes, at, last, tree, name, depth)
  local known, texts, length = names.messages[name] or {}, {}, 0
  if depth > DEEPEST then
    return "…"
  end
  local wrong, where = fields(bytes, at, last, function(field)
    local text, wrong = show_field(tvb, bytes, field, known[field.number], tree, depth)
    if text and length < LONGEST_TEXT then
      table.insert(texts, text)
      length = length + #text
    end
    return wrong
  end)
  if wrong and where then
    -- The message inside has said so itself.
    local range = tvb(where - 1, last - where + 1)
    tree:add(R.field, range, wrong):set_text("what follows is no field: " .. wrong)
  end
  return cut(table.concat(texts, ", ")), wrong
end

-- Calls

-- Calls that have begun, by the link and what names a call; and for each packet its call.
local calls, calls_of = {}, {}

local function has_ports(pinfo)
  return pinfo.src_port ~= 0 or pinfo.dst_port ~= 0
end

-- The link that a packet is on, the same in both directions.
local function link_of(pinfo)
  if has_ports(pinfo) then
    local one = tostring(pinfo.src) .. " " .. pinfo.src_port
    local other = tostring(pinfo.dst) .. " " .. pinfo.dst_port
    return one < other and one .. " " .. other or other .. " " .. one
  end
  -- The first pass of `tshark -2` has no fields: there all links are one, which call ids keep apart mostly.
  local interface = INTERFACE()
  return interface and tostring(interface) or ""
end

-- The call that a packet belongs to. Found once, in the order of the packets.
local function call_of(pinfo, packet)
  local call_key = table.concat({ packet.channel, packet.service, packet.method, packet.call }, " ")
  local place = pinfo.number .. " " .. call_key .. " " .. packet.type
  if pinfo.visited then
    return calls_of[place]
  end
  local key = link_of(pinfo) .. " " .. call_key
  local call = calls[key]
  if packet.type == REQUEST then
    call = { request = pinfo.number, at = pinfo.rel_ts }
    calls[key] = call
  elseif OPEN_CALLS[packet.call] then
    return nil
  elseif call and (packet.type == RESPONSE or packet.type == SERVER_ERROR) then
    call.response = call.response or pinfo.number
  end
  calls_of[place] = call
  return call
end

local function show_call(pinfo, tree, packet)
  local call = call_of(pinfo, packet)
  if not call then
    return
  end
  if packet.type == REQUEST then
    if call.response then
      tree:add(R.response_in, call.response):set_generated()
    end
    return
  end
  tree:add(R.request_in, call.request):set_generated()
  local span = pinfo.rel_ts - call.at
  if span >= 0 then
    local seconds = math.floor(span)
    local rest = math.floor((span - seconds) * 1000000000 + 0.5)
    tree:add(R.time, NSTime.new(seconds, math.min(rest, 999999999))):set_generated()
  end
end

-- Packets

local PACKET = {
  { name = "type", wire = VARINT }, { name = "channel", wire = VARINT }, { name = "service", wire = FIXED32 },
  { name = "method", wire = FIXED32 }, { name = "payload", wire = BYTES }, { name = "status", wire = VARINT },
  { name = "call", wire = VARINT },
}

local function add_info(pinfo, text)
  if pinfo.private["pw_rpc"] == tostring(pinfo.number) then
    pinfo.cols.info:append("; " .. text)
  else
    pinfo.private["pw_rpc"] = tostring(pinfo.number)
    pinfo.cols.info:set(text)
  end
end

-- Reads the header into the tree: what it says, or what is wrong.
local function show_header(tvb, bytes, tree, packet)
  return fields(bytes, 1, #bytes, function(field)
    local known = PACKET[field.number]
    local range = tvb(field.at - 1, field.stop - field.at)
    if not known then
      tree:add(R.unknown, range)
      return
    end
    if field.wire ~= known.wire then
      return known.name .. " has the wire type " .. string.format("%d", field.wire)
    end
    if known.name == "payload" then
      packet.payload = field
      return
    end
    if field.high ~= 0 then
      return known.name .. " is larger than 32 bits"
    end
    local value = known.wire == FIXED32 and fixed32(bytes, field.value) or field.low
    packet[known.name] = value
    packet.items[known.name] = tree:add(R[known.name], range, value)
  end)
end

local function drop_reason(packet)
  for _, name in ipairs({ "channel", "service", "method" }) do
    if packet[name] == 0 then
      return name .. " is 0"
    end
  end
  if not TYPES[packet.type] then
    return "there is no type " .. string.format("%d", packet.type)
  end
end

-- What the packet is about, by name where there is one.
local function title(packet)
  local service = names.services[packet.service]
  local method = service and service.methods[packet.method]
  local name = service and service.name or string.format("%08x", packet.service)
  return name .. "/" .. (method and method.name or string.format("%08x", packet.method)), service, method
end

local function dissect_packet(tvb, pinfo, tree)
  local bytes = tvb:raw()
  local root = tree:add(rpc, tvb())
  pinfo.cols.protocol:set("pw_rpc")
  if names.wrong then
    root:add_proto_expert_info(RX.names, names.wrong)
  end
  local packet = { type = 0, channel = 0, service = 0, method = 0, status = 0, call = 0, items = {} }
  local wrong, where = show_header(tvb, bytes, root, packet)
  if wrong then
    local range = tvb(where - 1)
    root:add(R.unknown, range):add_proto_expert_info(RX.malformed, "No packet of pw_rpc: " .. wrong)
    root:append_text(", malformed")
    add_info(pinfo, "malformed: " .. wrong)
    return
  end
  local kind = TYPES[packet.type] or "type " .. string.format("%d", packet.type)
  if not packet.items.type then
    packet.items.type = root:add(R.type, tvb(0, 0), packet.type):set_generated()
  end
  local name, service, method = title(packet)
  if service and packet.items.service then
    packet.items.service:append_text(" (" .. service.name .. ")")
  end
  if method and packet.items.method then
    packet.items.method:append_text(" (" .. method.name .. ")")
  end
  root:add(R.name, name):set_generated()
  local info = kind .. " " .. name
  local reason = drop_reason(packet)
  if reason then
    root:add_proto_expert_info(RX.refused, "Peers drop this packet: " .. reason)
    info = info .. " [" .. reason .. "]"
  end
  local ends = packet.type == RESPONSE or packet.type == SERVER_ERROR or packet.type == CLIENT_ERROR
  if ends then
    local status = STATUSES[packet.status] or "status " .. string.format("%d", packet.status)
    info = info .. " " .. status
    if not packet.items.status then
      packet.items.status = root:add(R.status, tvb(0, 0), packet.status):set_generated()
    end
    if packet.status ~= 0 then
      packet.items.status:add_proto_expert_info(RX.failed, "The call ended with " .. status)
    end
  elseif packet.type == 8 then
    info = info .. " (no more messages)"
  end
  local payload = packet.payload
  if payload and payload.stop > payload.value then
    local range = tvb(payload.value - 1, payload.stop - payload.value)
    local message = method and (packet.type % 2 == 0 and method.request or method.response)
    local item = root:add(R.payload, range)
    if message then
      item:append_text(" (" .. message:sub(2) .. ")")
    end
    local text, wrong = show_message(tvb, bytes, payload.value, payload.stop - 1, item, message, 0)
    if wrong then
      local what = message and "No " .. message:sub(2) or "No message"
      item:add_proto_expert_info(RX.payload, what .. ": " .. wrong)
    end
    info = info .. " {" .. text .. "}" .. (wrong and " [malformed: " .. wrong .. "]" or "")
  end
  show_call(pinfo, root, packet)
  root:append_text(", " .. info)
  add_info(pinfo, info)
  -- Of a file of `sinew capture`, which has no addresses.
  if not has_ports(pinfo) then
    local is_request = packet.type % 2 == 0
    pinfo.cols.src:set(is_request and "client" or "server")
    pinfo.cols.dst:set(is_request and "server" or "client")
  end
end

function rpc.dissector(tvb, pinfo, tree)
  dissect_packet(tvb, pinfo, tree)
  return tvb:len()
end

-- Frames

local FLAG, ESCAPE = 0x7E, 0x7D
-- Address, control and check sequence.
local SHORTEST = 6
-- More bytes than any frame has that peers send: what has no flag so far is none.
local LONGEST = 65536

-- Takes escapes out of what lies between two flags: the bytes, whether there were any, and which expert
-- speaks of them.
local function unescape(content)
  if not content:find("\125", 1, true) then
    return content, false
  end
  local out, at, needless = {}, 1, false
  while at <= #content do
    local byte = content:byte(at)
    if byte == ESCAPE then
      at = at + 1
      local next_byte = content:byte(at)
      if not next_byte or next_byte == ESCAPE then
        return nil, true, HX.escape
      end
      needless = needless or (next_byte ~= 0x5E and next_byte ~= 0x5D)
      byte = bits.bxor(next_byte, 0x20) % 256
    end
    table.insert(out, string.char(byte))
    at = at + 1
  end
  return table.concat(out), true, needless and HX.needless or nil
end

-- The address: low and high 32 bits, and its length. Groups of 7 bits, the lowest first; bit 0 ends it.
local function address_of(bytes)
  local turned = {}
  for at = 1, math.min(#bytes, 10) do
    local byte = bytes:byte(at)
    local is_last = byte % 2 == 1
    table.insert(turned, string.char(math.floor(byte / 2) + (is_last and 0 or 128)))
    if is_last then
      local low, high = varint(table.concat(turned), 1, at)
      return low, high, at
    end
  end
end

local function is_good(bytes)
  local last = #bytes - 4
  return last >= 2 and crc32(bytes, last) == fixed32(bytes, last + 1)
end

local function add_noise(tvb, at, length, tree, pinfo)
  local range = tvb(at, length)
  local item = tree:add(hdlc, range)
  item:append_text(", " .. length .. " bytes of no frame")
  item:add_proto_expert_info(HX.noise)
  add_info(pinfo, length .. " bytes of no frame")
end

-- What lies between two flags; `at` and `length` are where, without the flags.
local function show_frame(tvb, content, at, length, pinfo, tree)
  local root = tree:add(hdlc, tvb(at, length))
  pinfo.cols.protocol:set("pw_hdlc")
  local bytes, is_escaped, speaks = unescape(content)
  if not bytes then
    root:add_proto_expert_info(speaks)
    add_info(pinfo, "a frame with a wrong escape")
    return
  end
  if speaks then
    root:add_proto_expert_info(speaks)
  end
  if #bytes < SHORTEST then
    root:add_proto_expert_info(HX.short, "Too short for a frame: " .. #bytes .. " bytes")
    add_info(pinfo, "a frame that is too short")
    return
  end
  local inner = is_escaped and ByteArray.new(bytes, true):tvb("Without escapes") or tvb(at, length):tvb()
  local low, high, size = address_of(bytes)
  if not low then
    root:add_proto_expert_info(HX.address)
    add_info(pinfo, "a frame whose address has no end")
    return
  end
  local known = high == 0 and ADDRESSES[low]
  local item = root:add(H.address, inner(0, size), UInt64.new(low, high))
  if known then
    item:append_text(" (" .. known .. ")")
  end
  local last = #bytes - 4
  if size < last then
    root:add(H.control, inner(size, 1))
  end
  local fcs = root:add(H.fcs, inner(last, 4), fixed32(bytes, last + 1))
  local good = is_good(bytes)
  fcs:add(H.good, inner(last, 4), good):set_generated()
  local text = "address " .. tostring(UInt64.new(low, high))
  root:append_text(", " .. text)
  if not good then
    local wanted = string.format("0x%08x", crc32(bytes, last))
    fcs:add_proto_expert_info(HX.fcs, "The check sequence is wrong: it should be " .. wanted)
    add_info(pinfo, "a frame with a wrong check sequence")
    return
  end
  local payload = last - size - 1
  if payload <= 0 then
    add_info(pinfo, "an empty frame, " .. text)
    return
  end
  if high == 0 and low == RPC_ADDRESS then
    dissect_packet(inner(size + 1, payload):tvb(), pinfo, tree)
  else
    root:add(H.data, inner(size + 1, payload))
    add_info(pinfo, payload .. " bytes, " .. text)
  end
end

-- Shows the frames of a stream from its beginning, or from the end of the last whole frame. Gives how many
-- bytes at the end are not a whole frame yet.
local function show_stream(tvb, pinfo, tree)
  local bytes = tvb:raw()
  local first = bytes:find("\126", 1, true)
  if not first then
    -- The flag that ended the frame before it may have begun this one.
    if #bytes < LONGEST then
      return #bytes
    end
    add_noise(tvb, 0, #bytes, tree, pinfo)
    return 0
  end
  if first > 1 then
    local content = bytes:sub(1, first - 1)
    local plain = unescape(content)
    if plain and is_good(plain) then
      show_frame(tvb, content, 0, first - 1, pinfo, tree)
    else
      add_noise(tvb, 0, first - 1, tree, pinfo)
    end
  end
  local closes = first > 1
  while true do
    local stop = bytes:find("\126", first + 1, true)
    if not stop then
      break
    end
    closes = stop > first + 1
    if closes then
      show_frame(tvb, bytes:sub(first + 1, stop - 1), first, stop - first - 1, pinfo, tree)
    end
    first = stop
  end
  -- A flag at the end needs nothing behind it.
  local rest = #bytes - first
  if rest == 0 then
    return 0
  end
  if rest >= LONGEST then
    add_noise(tvb, first, rest, tree, pinfo)
    return 0
  end
  -- A flag that has ended a frame is done with, though it may begin the next one too: what was shown must lie
  -- before what is still wanted.
  return closes and rest or rest + 1
end

-- Of a line's records that are not whole frames: what is left over, by link and direction, and what each
-- record continues.
local left, continued = {}, {}

local function dissect_line(tvb, pinfo, tree)
  local key = link_of(pinfo) .. " " .. tostring(pinfo.p2p_dir)
  if not pinfo.visited then
    continued[pinfo.number] = left[key]
  end
  local before = continued[pinfo.number] or ""
  local whole = tvb
  if before ~= "" then
    whole = ByteArray.new(before .. tvb:raw(), true):tvb("With what came before")
  end
  local rest = show_stream(whole, pinfo, tree)
  if not pinfo.visited then
    left[key] = rest > 0 and whole:raw(whole:len() - rest) or nil
  end
  if rest > 0 and rest >= tvb:len() then
    add_info(pinfo, "a part of a frame")
  end
end

function line.dissector(tvb, pinfo, tree)
  if tvb:len() > 0 then
    pinfo.cols.protocol:set("pw_hdlc")
    dissect_line(tvb, pinfo, tree)
  end
  return tvb:len()
end

-- A stream of TCP, of which Wireshark keeps what is not whole.
function hdlc.dissector(tvb, pinfo, tree)
  if tvb:len() > 0 then
    pinfo.cols.protocol:set("pw_hdlc")
    local rest = show_stream(tvb, pinfo, tree)
    if rest > 0 then
      pinfo.desegment_offset = tvb:len() - rest
      pinfo.desegment_len = DESEGMENT_ONE_MORE_SEGMENT
    end
  end
  return tvb:len()
end

-- Where they are found

local function moves(table_name, proto)
  local dissectors, now = DissectorTable.get(table_name), ""
  return function(ports)
    if ports ~= now then
      if now ~= "" then
        dissectors:remove(now, proto)
      end
      if ports ~= "" then
        dissectors:add(ports, proto)
      end
      now = ports
    end
  end
end

local move_udp, move_tcp = moves("udp.port", rpc), moves("tcp.port", hdlc)

local function find_rpc()
  move_udp(tostring(rpc.prefs.udp_ports))
end

local function find_hdlc()
  move_tcp(tostring(hdlc.prefs.tcp_ports))
end

rpc.prefs_changed = find_rpc
hdlc.prefs_changed = find_hdlc
find_rpc()
find_hdlc()

-- Before each pass over a file.
function rpc.init()
  calls, calls_of, left, continued = {}, {}, {}, {}
  read_names(rpc.prefs.descriptors)
end

local ENCAPSULATIONS = wtap_encaps or wtap
DissectorTable.get("wtap_encap"):add(ENCAPSULATIONS.USER0, rpc)
DissectorTable.get("wtap_encap"):add(ENCAPSULATIONS.USER1, line)
DissectorTable.get("tcp.port"):add_for_decode_as(hdlc)
DissectorTable.get("udp.port"):add_for_decode_as(rpc)
