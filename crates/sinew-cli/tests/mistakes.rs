//! Mistakes that a user makes, and what the tool says of each: the likely cause, the remedy, the exit code.
//!
//! One table. Every row is run for people and for programs, and what holds for all texts is checked with it.

mod support;

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::Value;
use sinew::frame::Framing;
use sinew::rpc::packet::{OPEN_CALL_ID, PacketType, Route, encode};
use sinew::rpc::{Status, id};
use support::{Cable, Serve, complaint, free_place, sinew, socket, start};

/// A mistake, and what is to be said of it.
struct Mistake {
    name: &'static str,
    how: How,
    code: i32,
    /// Words of the cause, and of the remedy.
    says: [&'static str; 2],
}

/// How it is made. Words in braces are names of [`World::named`].
enum How {
    Args(&'static [&'static str]),
    /// With this as standard input.
    Input(&'static [&'static str], &'static [u8]),
    /// With a standard output that takes nothing.
    Full(&'static [&'static str]),
    /// By more than one command; the arguments stand behind those of the one that fails.
    With(fn(&World, &[&str]) -> Output),
}

use How::{Args, Full, Input, With};

const CALL: &str = "demo.Kinds/Double";

#[rustfmt::skip]
const MISTAKES: &[Mistake] = &[
    // Commands and options.
    row("unknown command", Args(&["calls"]), 64, ["unrecognized subcommand 'calls'", "'call'"]),
    row("unknown command of a group", Args(&["shm", "stat"]), 64, ["unrecognized subcommand", "'status'"]),
    row("unknown option", Args(&["list", "{at}", "--jsn"]), 64, ["unexpected argument '--jsn'", "'--json'"]),
    row("nothing to call", Args(&["call", "{at}"]), 64, ["<SERVICE/METHOD>", "sinew call --help"]),
    row("options against each other", Args(&["pub", "a", "1", "--listen", "tcp:[::1]:0", "--connect", "tcp:[::1]:1"]), 64, ["cannot be used with", "write sinew pub --listen <ENDPOINT> <KEY> <VALUE>"]),
    row("option without its value", Args(&["pub", "a", "1", "--attachment"]), 64, ["a value is required", "sinew pub --help"]),
    row("number out of range", Args(&["bench", "{at}", "-n", "65"]), 64, ["65 is not in 1..=64", "sinew bench --help"]),
    row("echo that is too large", Args(&["bench", "{at}", "--size", "5000"]), 64, ["an echo has room for 256 bytes", "give 0 to 256"]),
    row("packet size out of range", Args(&["call", "{at}", CALL, "--mtu", "10"]), 64, ["10 is not in 64..=4096", "sinew call --help"]),
    row("time that is none", Args(&["ping", "{at}", "-i", "soon"]), 64, ["expected number", "give e.g. 100ms, 5s or 2min"]),
    row("time beyond a clock", Args(&["log", "{at}", "--for", "500000000000y"]), 64, ["it is above 100 years", "give e.g. 365d"]),
    row("time of a recording that is none", Args(&["record", "{at}", "-o", "x.mcap", "--for", "ever"]), 64, ["expected number", "give e.g. 100ms, 5s or 2min"]),
    row("no time at all", Args(&["call", "{at}", CALL, "--timeout", "0s"]), 64, ["it must be above zero", "give e.g. 100ms or 5s"]),
    row("no time at all for a list", Args(&["list", "{at}", "--timeout", "0s"]), 64, ["it must be above zero", "give e.g. 100ms or 5s"]),
    row("unknown framing", Args(&["call", "{at}", CALL, "--frame", "slip"]), 64, ["invalid value 'slip'", "the framings are hdlc, len, cobs and zenoh"]),
    row("unknown shell", Args(&["completions", "tcsh"]), 64, ["invalid value 'tcsh'", "bash, zsh, fish"]),
    // Endpoints as they are written.
    row("endpoint without a kind", Args(&["call", "nowhere", CALL]), 64, ["`nowhere` is no endpoint", "write tcp:HOST:PORT"]),
    row("endpoint as Zenoh writes it", Args(&["list", "tcp/127.0.0.1:1"]), 64, ["how Zenoh writes it", "write tcp:127.0.0.1:1"]),
    row("no port", Args(&["list", "tcp:localhost"]), 64, ["`localhost` is not HOST:PORT", "[::1]:4000"]),
    row("port out of range", Args(&["list", "udp:localhost:65536"]), 64, ["is not HOST:PORT", "a port from 0 to 65535"]),
    row("no path", Args(&["list", "unix:"]), 64, ["invalid value 'unix:'", "a path or a command must follow the colon"]),
    row("unknown option of an endpoint", Args(&["list", "unix:/x?colour=red"]), 64, ["there is no option `colour=red`", "known are frame, channel"]),
    row("option of another kind of endpoint", Args(&["list", "unix:/x?baud=9600"]), 64, ["`baud` does not apply to this kind", "leave it out"]),
    row("option of an endpoint twice", Args(&["list", "unix:/x?mtu=64&mtu=65"]), 64, ["`mtu` stands there twice", "leave one out"]),
    row("speed that is none", Args(&["list", "serial:/x?baud=fast"]), 64, ["`fast` is no value for the option `baud`", "a speed in baud, for example 115200"]),
    row("packet size beside a link file", Args(&["call", "shm:/x?config=y", CALL, "--mtu", "64"]), 64, ["--mtu does not apply beside config=", "leave one out"]),
    row("packet size beside a link file, in the endpoint", Args(&["list", "shm:/x?config=y&mtu=64"]), 64, ["does not apply beside", "leave one out"]),
    row("board that is none", Args(&["demo", "--board", "tcp:[::1]:1"]), 64, ["it is no board", "write qemu:IMAGE"]),
    row("offset that is none", Args(&["shm", "status", "shm:x?offset=far"]), 64, ["`far` is no offset", "as in 65536 or 0x3000_0000"]),
    // Nobody there.
    row("no server on tcp", Args(&["call", "tcp:{free}", CALL]), 69, ["no server listens there", "`sinew serve tcp:127."]),
    row("no server on udp", Args(&["call", "udp:{free}", CALL]), 69, ["went away", "nobody listens on that port: start the server, or correct it"]),
    row("no server on unix", Args(&["list", "unix:none.sock"]), 69, ["no server listens there", "start it, or check the address"]),
    row("no server on shm", Args(&["ping", "shm:none.sock"]), 69, ["no server listens there", "start it, or check the address"]),
    row("file in place of a socket", Args(&["list", "unix:text"]), 69, ["it is a file, not a socket", "check the path"]),
    row("file in place of memory", Args(&["list", "shm:text"]), 69, ["it is a file, not a socket", "check the path"]),
    row("unknown host", Args(&["list", "tcp:no-such-host.invalid:1"]), 69, ["the host name has no address", "check its spelling and the network"]),
    row("unplugged line", Args(&["call", "serial:/dev/no-such-line", CALL]), 69, ["there is no such device", "check the cable and the path; `ls /dev/tty*`"]),
    row("device that is no line", Args(&["list", "serial:/dev/null"]), 69, ["this is no serial device", "check the path"]),
    row("command that fails", Args(&["call", "exec:exit 3", CALL]), 69, ["went away before the call was complete", "run it alone to see why"]),
    row("command that is not there", Args(&["call", "exec:no-such-command", CALL]), 69, ["no-such-command: not found", "run it alone to see why"]),
    row("server of another kind", Args(&["list", "unix:{socket}"]), 69, ["the socket is of another kind", "unix: or of shm:"]),
    row("packet sizes that differ", Args(&["call", "shm:{socket}", CALL, "--mtu", "512"]), 69, ["the two sides do not fit (length of", "give both the same mtu"]),
    row("no memory of the other core", Args(&["call", "shm:none?doorbell=bell", CALL]), 69, ["there is no such file", "start the core or emulator"]),
    row("nobody at the doorbell", Args(&["call", "shm:text?doorbell=none", CALL]), 69, ["nobody listens at the doorbell", "check both paths"]),
    row("file in place of the doorbell", Args(&["call", "shm:text?doorbell=text", CALL]), 69, ["is a file, not a socket", "check both paths"]),
    row("memory that is too short", Args(&["call", "shm:text?doorbell=bell", CALL]), 69, ["the file is too short", "check the file, offset="]),
    // Link files.
    row("no link file", Args(&["list", "shm:x?config=none.toml"]), 69, ["none.toml: there is no such file", "check the path"]),
    row("unknown key of a link file", Args(&["list", "shm:x?config=key.toml"]), 69, ["key.toml:1: there is no key `colour`", "known here are trust, line, channel"]),
    row("link file that is no TOML", Args(&["shm", "status", "shm:{socket}", "--config", "broken.toml"]), 64, ["broken.toml:1: no TOML", "correct the file"]),
    row("no link to look at", Args(&["shm", "status", "shm:none.sock"]), 69, ["there is no such file or socket", "start what makes it, or check the path"]),
    row("folder to look at", Args(&["shm", "status", "shm:."]), 69, ["it is a folder", "check the path"]),
    row("link file of nobody", Args(&["shm", "status", "shm:{socket}", "--toml"]), 69, ["the process there has no link now", "let somebody connect to it first"]),
    // Images.
    row("no image", Args(&["call", "qemu:none", CALL]), 69, ["there is no such image", "make -C firmware images"]),
    row("image that is none", Args(&["call", "qemu:text", CALL]), 69, ["this is no image", "give the file that the linker has written"]),
    row("image that names no machine", Args(&["call", "qemu:{own}", CALL]), 69, ["does not say on which machine", "machine=NAME"]),
    row("image for another processor", Args(&["call", "qemu:{own}?machine=mps2-an385&link=uart", CALL]), 69, ["the image is for", "built for this machine, or another machine=NAME"]),
    row("no emulator", With(without_emulator), 69, ["qemu-system-arm is missing", "apt-get install qemu-system-arm"]),
    // Serving.
    row("address in use", Args(&["serve", "{at}"]), 69, ["already in use", "end the other server, or choose another address"]),
    row("memory in use", Args(&["serve", "shm:{socket}"]), 69, ["already in use", "end the other server, or choose another address"]),
    row("address of another machine", Args(&["serve", "tcp:203.0.113.1:4000"]), 69, ["this machine does not have the address", "use 0.0.0.0 for all of its own"]),
    row("folder that is not there", Args(&["serve", "unix:none/x.sock"]), 69, ["No such file or directory", "the folder of the path"]),
    row("path that is too long", With(too_long), 69, ["cannot serve unix:", "choose a shorter path"]),
    row("socket in place of a file", Args(&["serve", "unix:text"]), 69, ["it is a file, not a socket", "what is no socket is never replaced"]),
    row("memory in place of a link to nothing", Args(&["serve", "shm:dangling"]), 69, ["it is a symbolic link to nothing", "choose another path"]),
    row("relay between one stream", Args(&["relay", "stdio:", "stdio:"]), 64, ["both sides cannot be stdio", "name another link for one side"]),
    // Services and methods.
    row("misspelled method", Args(&["call", "{at}", "demo.Kinds/Duble"]), 64, ["no method demo.Kinds/Duble at the server", "did you mean demo.Kinds/Double?"]),
    row("method without its service", Args(&["call", "{at}", "Double"]), 64, ["no method Double", "did you mean demo.Kinds/Double?"]),
    row("unknown service", Args(&["call", "{at}", "home.Oven/Heat"]), 64, ["no method home.Oven/Heat", "the methods are"]),
    row("unknown message", Args(&["describe", "{at}", "demo.Kindz"]), 64, ["the server has no demo.Kindz", "did you mean demo.Kinds?"]),
    row("misspelled service without its package", Args(&["describe", "{at}", "Knds"]), 64, ["the server has no Knds", "did you mean demo.Kinds?"]),
    row("server that says nothing of itself", With(without_reflection), 5, ["does not say what it serves", "`sinew call … --proto FILE`"]),
    row("server without the service", Args(&["call", "{at}", "t.Other/Get", "--proto", "other.proto"]), 5, ["NOT_FOUND", "the server has no such service or method"]),
    row("no .proto file", Args(&["call", "{at}", CALL, "--proto", "none.proto"]), 64, ["there is no file none.proto", "check the path"]),
    row("broken .proto file", Args(&["call", "{at}", CALL, "--proto", "bad.proto"]), 64, ["expected ';'", "correct the file"]),
    row("missing import", Args(&["call", "{at}", CALL, "--proto", "import.proto"]), 64, ["import 'no.proto' not found", "-I DIR"]),
    row(".proto file without a service", Args(&["call", "{at}", "t.M/x", "--proto", "empty.proto"]), 64, ["have no service", "the file that contains the service"]),
    row("another .proto file than the server's", Args(&["call", "{at}", CALL, "{\"n\": 1}", "--proto", "differs.proto"]), 15, ["the answer is no demo.Out", "the one that the server was built from"]),
    row("descriptors in place of another file", Args(&["describe", "{at}", "--descriptor-set", "text"]), 64, ["text is there, and is no FileDescriptorSet", "give another name, or remove it"]),
    row("descriptors to where there is no room", Args(&["describe", "{at}", "--descriptor-set", "/dev/full"]), 64, ["cannot write /dev/full: No space left", "make room there"]),
    // Requests.
    row("JSON that ends early", Args(&["call", "{at}", CALL, "{\"n\": 1"]), 64, ["the request is no demo.Num: EOF", "Num is {\"n\": uint32}"]),
    row("misspelled field", Args(&["call", "{at}", "Cache/SetValue", "{\"valeu\": 1}"]), 64, ["unrecognized field name 'valeu'", "did you mean \"value\"?"]),
    row("value of another type", Args(&["call", "{at}", CALL, "{\"n\": \"x\"}"]), 64, ["the request is no demo.Num", "correct it: Num is {\"n\": uint32}"]),
    row("value out of range", Args(&["call", "{at}", CALL, "{\"n\": -1}"]), 64, ["out of range", "correct it: Num is {\"n\": uint32}"]),
    row("list in place of a message", Args(&["call", "{at}", CALL, "[1]"]), 64, ["expected a map", "correct it: Num is {\"n\": uint32}"]),
    row("two messages in one request", Args(&["call", "{at}", CALL, "{\"n\": 1} {\"n\": 2}"]), 64, ["trailing characters", "correct it: Num is {\"n\": uint32}"]),
    row("request of a stream as an argument", Args(&["call", "{at}", "Kinds/Sum", "{\"n\": 1}"]), 64, ["takes a stream", "pipe one JSON message per line"]),
    row("broken line of a stream", Input(&["call", "{at}", "Kinds/Sum"], b"{\"n\": 1}\n\n{\"n\": }\n"), 64, ["line 3 of standard input is no demo.Num", "Num is {\"n\": uint32}"]),
    row("line of a stream that is no text", Input(&["call", "{at}", "Kinds/Sum"], b"{\"n\": 1}\n\xff\n"), 64, ["line 2 of standard input is not UTF-8", "pipe one JSON message per line"]),
    row("line without an end", With(line_without_an_end), 64, ["line 1 of standard input is longer than 256 KiB", "pipe one JSON message per line"]),
    row("message larger than a packet", With(too_large), 11, ["the message of 2003 bytes is too large: a packet on this link takes at most 1024 bytes", "raise --mtu here and the server's limit"]),
    row("request that the method refuses", Args(&["call", "{at}", CALL, "{\"n\": 4294967295}"]), 11, ["OUT_OF_RANGE", "change the request, or what it asks for; `sinew describe"]),
    // Answers.
    row("wrong channel", Args(&["call", "{at}", CALL, "--channel", "3", "--timeout", "300ms"]), 4, ["no answer from tcp:", "does not serve channel 3 (give --channel"]),
    row("wrong framing", Args(&["call", "{at}", CALL, "--frame", "len", "--timeout", "300ms"]), 4, ["no answer from tcp:", "it uses another framing (give --frame)"]),
    row("answers for another channel", With(another_channel), 4, ["answers arrive for channel 7", "give --channel 7"]),
    row("log on the line of the calls", With(log_on_the_line), 4, ["27 bytes arrived, but no valid hdlc frame", "writes its log on the same line"]),
    row("line that echoes", With(echo), 4, ["our own packets come back", "turn its echo off"]),
    row("wrong speed of a line", With(wrong_speed), 4, ["the baud rate is wrong (here 115200", "give serial:PATH?baud=N"]),
    row("server that hangs up", With(hangs_up), 69, ["went away before the call was complete", "it may speak another protocol or framing"]),
    row("server that goes in the middle", With(goes_in_the_middle), 69, ["went away before the call was complete", "look at its log, then call again"]),
    row("error that says OK", With(error_that_says_ok), 2, ["ended with OK", "look at its log"]),
    row("status that is none", With(status_that_is_none), 2, ["ended with status 99: pw_rpc has no such number", "change the request, or what it asks for"]),
    row("status that is none, of a list", With(list_with_a_status_that_is_none), 2, ["could not be asked what it serves: status 99: pw_rpc has no such number", "look at the device and the line"]),
    row("nobody who answers a ping", Args(&["ping", "exec:sleep 60", "-c", "1", "--timeout", "50ms"]), 4, ["no answer from exec:sleep 60 within 50ms", "not one byte came back"]),
    row("bench of another channel", Args(&["bench", "{at}", "--for", "50ms", "--timeout", "50ms", "--channel", "7"]), 4, ["no answer from tcp:", "does not serve channel 7 (give --channel"]),
    row("log of another channel", Args(&["log", "{at}", "--for", "100ms", "--channel", "7"]), 4, ["no answer from tcp:", "does not serve channel 7 (give --channel"]),
    row("method of another channel that is asked for", Args(&["call", "{at}", "home.Oven/Heat", "--channel", "7", "--timeout", "300ms"]), 4, ["within 300ms", "does not serve channel 7 (give --channel"]),
    row("list in another framing", Args(&["list", "{at}", "--frame", "len", "--timeout", "300ms"]), 4, ["within 300ms", "it uses another framing (give --frame)"]),
    row("description of what says its log", Args(&["describe", "{says-log}", "demo.Kinds", "--timeout", "300ms"]), 4, ["within 300ms", "27 bytes arrived, but no valid hdlc frame"]),
    row("list of a server that hangs", Args(&["list", "exec:sleep 60", "--timeout", "50ms"]), 4, ["no answer from exec:sleep 60 within 50ms", "needs longer (give --timeout a longer time)"]),
    row("device on another channel", Args(&["info", "{at}", "--channel", "7"]), 4, ["no answer from tcp:", "does not serve channel 7 (give --channel"]),
    row("list of nobody on udp", Args(&["list", "udp:{free}"]), 69, ["went away", "nobody listens on that port: start the server, or correct it"]),
    row("nobody on udp who says what it is", Args(&["info", "udp:{free}"]), 69, ["went away", "nobody listens on that port"]),
    row("ping of nobody on udp", Args(&["ping", "udp:{free}", "-c", "1"]), 69, ["went away", "nobody listens on that port"]),
    row("bench of nobody on udp", Args(&["bench", "udp:{free}", "--for", "50ms"]), 69, ["went away", "nobody listens on that port"]),
    row("log of nobody on udp", Args(&["log", "udp:{free}"]), 69, ["went away", "nobody listens on that port"]),
    row("nobody who says what it is", Args(&["info", "tcp:{free}"]), 69, ["no server listens there", "start it, or check the address"]),
    row("nobody whose log is shown", Args(&["log", "unix:none.sock"]), 69, ["no server listens there", "start it, or check the address"]),
    // Captures and recordings.
    row("capture to where there is no room", Args(&["capture", "{at}", "-o", "text/x"]), 64, ["cannot write text/x", "check the path"]),
    row("capture that nobody reads", Args(&["capture", "{at}", "-o", "fifo"]), 64, ["nobody reads fifo", "start its reader first"]),
    row("recording that nobody reads", Args(&["record", "{at}", "-o", "fifo"]), 64, ["nobody reads fifo", "start its reader first"]),
    row("recording of nothing", Args(&["record", "{at}", "-o", "x.mcap", "--no-log"]), 64, ["there is nothing to record", "--stream"]),
    row("recording with the texts of another file", Args(&["record", "{at}", "-o", "x.mcap", "--elf", "text"]), 64, ["text has no texts of records", "give --elf the ELF file that the device runs"]),
    row("recording of a misspelled stream", Args(&["record", "{at}", "-o", "x.mcap", "--no-log", "--stream", "demo.Kinds/Coutn"]), 64, ["no method demo.Kinds/Coutn", "did you mean demo.Kinds/Count?"]),
    row("no recording", Args(&["replay", "none.mcap", "{at}"]), 64, ["cannot read none.mcap", "a file that `sinew record` has written"]),
    row("recording that is none", Args(&["replay", "text", "{at}"]), 64, ["text is no MCAP file", "give a file that `sinew record` has written"]),
    row("replay with a time that is none", Args(&["replay", "text", "{at}", "--timeout", "soon"]), 64, ["expected number", "give e.g. 100ms, 5s or 2min"]),
    // Output.
    row("full disk", Full(&["call", "{at}", CALL]), 70, ["cannot write to standard output: No space left", "make room"]),
    row("full disk of a list", Full(&["list", "{at}"]), 70, ["cannot write to standard output: No space left", "make room"]),
    row("reader that has gone", With(reader_that_has_gone), 1, ["cancelled", "the server has been told"]),
    // Generated code.
    row("nothing to generate from", Args(&["gen", "none.proto", "--out", "made"]), 64, ["file 'none.proto' is not in any include path", "check the name and the include folders"]),
    row("broken .proto to generate from", Args(&["gen", "bad.proto", "--out", "made"]), 64, ["expected ';'", "correct the lines that are shown"]),
    row("missing import to generate from", Args(&["gen", "import.proto", "--out", "made"]), 64, ["import 'no.proto' not found", "check the name and the include folders"]),
    row("folder that cannot be made", Args(&["gen", "empty.proto", "--out", "text/made"]), 64, ["cannot write", "check the folder"]),
    row("stale code", Args(&["gen", "empty.proto", "--out", "made", "--check"]), 1, ["which does not exist", "without --check, then commit"]),
    row("unknown key of a system file", Args(&["gen", "key.toml", "--out", "made"]), 64, ["key.toml:1: there is no key `colour`", "known here are domain, region, link"]),
    row("system file that is no TOML", Args(&["gen", "broken.toml", "--out", "made"]), 64, ["broken.toml:1: no TOML", "correct it"]),
    row("system file among others", Args(&["gen", "key.toml", "bad.proto", "--out", "made"]), 64, ["key.toml is a system file, and there are others", "give one system file"]),
    // Publishing and subscribing.
    row("key with empty parts", Args(&["pub", "demo//lamp/", "on"]), 64, ["an empty chunk", "write `demo/lamp`"]),
    row("star beside letters", Args(&["sub", "demo/lamp*"]), 64, ["a * beside other characters", "write $*"]),
    row("key that is not canonical", Args(&["sub", "demo/**/*"]), 64, ["not in canonical form", "write `demo/*/**`"]),
    row("character that no key has", Args(&["get", "demo/#"]), 64, ["# or ? in a key expression", "take other characters"]),
    row("no router", Args(&["pub", "a", "1", "--connect", "tcp:{free}"]), 69, ["no server listens there", "start a Zenoh router there, for example `zenohd`"]),
    row("nobody who waits on unix", Args(&["sub", "a", "--connect", "unix:none.sock"]), 69, ["no server listens there", "--listen unix:none.sock"]),
    row("no node of Zenoh", Args(&["get", "a", "--connect", "{says-log}"]), 69, ["cannot reach tcp:", "frames otherwise (option frame=NAME of the endpoint)"]),
    row("nothing to publish", Args(&["pub", "a", "--file", "none"]), 64, ["cannot read none", "check the path; - is standard input"]),
    row("nobody who answers", With(nobody_answers), 5, ["nobody answered for a", "start the queryable, or compare the keys"]),
    row("nobody who subscribes", With(nobody_subscribes), 5, ["nobody there subscribes to this key", "start the subscriber first"]),
    row("subscriber that does not come", With(no_subscriber_comes), 4, ["nobody subscribed within 50ms", "--wait-subscriber=1h"]),
];

const fn row(name: &'static str, how: How, code: i32, says: [&'static str; 2]) -> Mistake {
    Mistake {
        name,
        how,
        code,
        says,
    }
}

/// What there is to make mistakes with.
struct World {
    folder: PathBuf,
    server: Serve,
    shared: Serve,
    socket: String,
    free: String,
    says_log: String,
    _bell: UnixListener,
}

const FILES: [(&str, &str); 8] = [
    ("text", "text"),
    ("key.toml", "colour = 1\n"),
    ("broken.toml", "x = [\n"),
    (
        "empty.proto",
        "syntax = \"proto3\"; package t; message M {}",
    ),
    (
        "bad.proto",
        "syntax = \"proto3\"; package t; message M { string s = 1 }",
    ),
    (
        "import.proto",
        "syntax = \"proto3\"; import \"no.proto\"; package t; message M {}",
    ),
    (
        "other.proto",
        "syntax = \"proto3\"; package t; message M { string s = 1; } \
         service Other { rpc Get(M) returns (M); }",
    ),
    (
        "differs.proto",
        "syntax = \"proto3\"; package demo; message Num { uint32 n = 1; } \
         message Out { Num n = 1; } service Kinds { rpc Double(Num) returns (Out); }",
    ),
];

impl World {
    fn new() -> World {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mistakes");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in FILES {
            fs::write(folder.join(name), text).unwrap();
        }
        symlink("nowhere", folder.join("dangling")).unwrap();
        let made = Command::new("mkfifo").arg(folder.join("fifo")).status();
        assert!(made.unwrap().success());
        let socket = socket("mistakes");
        World {
            _bell: UnixListener::bind(folder.join("bell")).unwrap(),
            server: Serve::start("tcp:127.0.0.1:0"),
            shared: Serve::start(&format!("shm:{socket}")),
            free: free_place(),
            says_log: peer(LOG).0,
            folder,
            socket,
        }
    }

    /// Puts the places of this world into an argument.
    fn named(&self, text: &str) -> String {
        let own = env!("CARGO_BIN_EXE_sinew");
        [
            ("{at}", self.server.endpoint.as_str()),
            ("{socket}", &self.socket),
            ("{free}", &self.free),
            ("{says-log}", &self.says_log),
            ("{own}", own),
        ]
        .iter()
        .fold(text.into(), |text, (name, place)| text.replace(name, place))
    }

    /// The tool in the folder of this world, with nothing to read.
    fn tool(&self, args: &[&str], more: &[&str]) -> Command {
        let args: Vec<String> = args.iter().map(|arg| self.named(arg)).collect();
        let mut command = sinew(&[]);
        command.args(args).args(more).current_dir(&self.folder);
        command.env_remove("NO_COLOR").stdin(Stdio::null());
        command
    }

    fn run(&self, mistake: &Mistake, more: &[&str]) -> Output {
        match &mistake.how {
            Args(args) => support::output(&mut self.tool(args, more)),
            Input(args, input) => {
                let mut child = piped(&mut self.tool(args, more));
                // It need not read to the end.
                let _ = child.stdin.take().unwrap().write_all(input);
                child.wait_with_output().unwrap()
            }
            Full(args) => {
                let full = File::options().write(true).open("/dev/full").unwrap();
                let mut command = self.tool(args, more);
                let child = start(command.stdout(full).stderr(Stdio::piped()));
                child.wait_with_output().unwrap()
            }
            With(how) => how(self, more),
        }
    }
}

fn piped(command: &mut Command) -> Child {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    start(command.stderr(Stdio::piped()))
}

const LOG: &[u8] = b"[INF] boot ok\r\n[INF] idle\r\n";

/// A peer that says this to all who come; and a word for each whom it has told.
fn peer(bytes: &'static [u8]) -> (String, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (send, said) = channel();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let (mut socket, send) = (socket.unwrap(), send.clone());
            thread::spawn(move || {
                let _ = socket.write_all(bytes);
                let _ = send.send(());
                let _ = socket.read_to_end(&mut Vec::new());
            });
        }
    });
    (format!("tcp:127.0.0.1:{port}"), said)
}

/// A call that ends by silence after what came before: its time does not run while its input is open.
fn silence_after(world: &World, at: &str, more: &[&str], has_come: impl FnOnce()) -> Output {
    let args = ["call", at, "demo.Kinds/EchoAll", "--timeout", "300ms"];
    let mut child = piped(&mut world.tool(&args, more));
    has_come();
    drop(child.stdin.take());
    child.wait_with_output().unwrap()
}

fn another_channel(world: &World, more: &[&str]) -> Output {
    // A RESPONSE for channel 7; the framing by length has no checksum.
    let packet =
        b"\x08\x01\x10\x07\x1d\xbe\x5f\x6b\x23\x25\xd7\xae\xaf\x54\x2a\x02\x08\x2a\x38\x01";
    let framing = Framing::from_name("len").unwrap();
    let mut frame = vec![0; framing.max_encoded_len(packet.len())];
    let len = framing.encode(packet, &mut frame).unwrap();
    frame.truncate(len);
    let (at, said) = peer(Vec::leak(frame));
    silence_after(world, &format!("{at}?frame=len"), more, || {
        said.recv().unwrap()
    })
}

fn log_on_the_line(world: &World, more: &[&str]) -> Output {
    let (at, said) = peer(LOG);
    silence_after(world, &at, more, || said.recv().unwrap())
}

fn echo(world: &World, more: &[&str]) -> Output {
    let copy = world.folder.join("echo");
    let _ = fs::remove_file(&copy);
    // It writes to its standard output first.
    silence_after(world, "exec:tee echo", more, || {
        while fs::metadata(&copy).map_or(0, |file| file.len()) == 0 {
            thread::yield_now();
        }
    })
}

fn wrong_speed(world: &World, more: &[&str]) -> Output {
    let cable = Cable::new();
    let mut noise = File::options().write(true).open(&cable.ends[0]).unwrap();
    thread::spawn(move || while noise.write_all(&[0xf8, 0x00, 0x1f, 0x80]).is_ok() {});
    // Nobody sees the noise arrive, but there is enough of it.
    let at = format!("serial:{}", cable.ends[1]);
    let args = ["call", &at, CALL, "--timeout", "2s"];
    support::output(&mut world.tool(&args, more))
}

fn hangs_up(world: &World, more: &[&str]) -> Output {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("tcp:{}", listener.local_addr().unwrap());
    thread::spawn(move || drop(listener.accept()));
    support::output(&mut world.tool(&["call", &at, CALL], more))
}

fn goes_in_the_middle(world: &World, more: &[&str]) -> Output {
    let server = Serve::start("tcp:127.0.0.1:0");
    let args = ["call", &server.endpoint, "Kinds/EchoAll"];
    let mut child = piped(&mut world.tool(&args, more));
    let input = child.stdin.as_mut().unwrap();
    input.write_all(b"{\"n\": 1}\n").unwrap();
    let out = child.stdout.as_mut().unwrap();
    out.read_exact(&mut [0; 8]).unwrap();
    server.kill();
    child.wait_with_output().unwrap()
}

fn error_that_says_ok(world: &World, more: &[&str]) -> Output {
    // SERVER_ERROR with status OK, for the open call id.
    let (at, _) = peer(
        b"\x7e\xa5\x03\x08\x05\x10\x01\x1d\xbe\x5f\x6b\x23\x25\xd7\xae\xaf\x54\x38\xff\xff\xff\xff\x0f\x36\xbb\x70\xa1\x7e",
    );
    let args = ["call", &at, CALL, "--timeout", "60s"];
    support::output(&mut world.tool(&args, more))
}

/// A peer that answers a call of this method with a status that pw_rpc does not have.
fn answers_99(service: &str, method: &str) -> String {
    let route = Route {
        channel: 1,
        service: id(service),
        method: id(method),
        call_id: OPEN_CALL_ID,
    };
    let (mut packet, status) = ([0; 64], Status::from_code(99));
    let len = encode(&mut packet, PacketType::RESPONSE, &route, &[][..], status).unwrap();
    let mut frame = vec![0; Framing::HDLC.max_encoded_len(len)];
    let len = Framing::HDLC.encode(&packet[..len], &mut frame).unwrap();
    frame.truncate(len);
    peer(Vec::leak(frame)).0
}

fn status_that_is_none(world: &World, more: &[&str]) -> Output {
    let at = answers_99("demo.Kinds", "Double");
    support::output(&mut world.tool(&["call", &at, CALL], more))
}

fn list_with_a_status_that_is_none(world: &World, more: &[&str]) -> Output {
    let at = answers_99("sinew.Reflection", "Describe");
    support::output(&mut world.tool(&["list", &at], more))
}

fn line_without_an_end(world: &World, more: &[&str]) -> Output {
    let mut child = piped(&mut world.tool(&["call", "{at}", "Kinds/Sum"], more));
    let mut input = child.stdin.take().unwrap();
    // Ends, because the tool does not read to the end of it.
    while input.write_all(&[b' '; 4096]).is_ok() {}
    child.wait_with_output().unwrap()
}

fn too_large(world: &World, more: &[&str]) -> Output {
    let request = format!("{{\"s\": \"{}\"}}", "x".repeat(2000));
    let args = [
        "call",
        "{at}",
        "t.Other/Get",
        &request,
        "--proto",
        "other.proto",
    ];
    support::output(&mut world.tool(&args, more))
}

fn too_long(world: &World, more: &[&str]) -> Output {
    let at = format!("unix:{}", "x".repeat(120));
    support::output(&mut world.tool(&["serve", &at], more))
}

fn without_reflection(world: &World, more: &[&str]) -> Output {
    let service = sinew_demo::cache::Serve(sinew_demo::CacheService::new());
    let server = sinew_io::Server::new(service);
    let listening = server.listen(&"tcp:127.0.0.1:0".parse().unwrap()).unwrap();
    let at = listening.endpoint().to_string();
    support::output(&mut world.tool(&["list", &at], more))
}

/// The head of an ELF file for a processor by Arm of 32 bits, without anything in it.
fn image(folder: &Path) {
    let mut head = [0; 52];
    head[..7].copy_from_slice(b"\x7fELF\x01\x01\x01");
    head[16] = 2;
    head[18] = 40;
    head[20] = 1;
    head[40] = 52;
    fs::write(folder.join("image"), head).unwrap();
}

fn without_emulator(world: &World, more: &[&str]) -> Output {
    image(&world.folder);
    let programs = world.folder.join("programs");
    let _ = fs::create_dir(&programs);
    let known = std::env::var_os("PATH").unwrap();
    let setpriv = std::env::split_paths(&known).map(|folder| folder.join("setpriv"));
    let setpriv = { setpriv }.find(|it| it.exists()).unwrap();
    let _ = symlink(setpriv, programs.join("setpriv"));
    let args = ["call", "qemu:image?machine=mps2-an385&link=uart", CALL];
    support::output(world.tool(&args, more).env("PATH", programs))
}

fn reader_that_has_gone(world: &World, more: &[&str]) -> Output {
    let args = ["call", "{at}", "Kinds/Count", "{\"n\": 4000000000}"];
    let mut child = piped(&mut world.tool(&args, more));
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut [0; 8]).unwrap();
    drop(out);
    child.wait_with_output().unwrap()
}

/// Somebody who subscribes to another key.
fn elsewhere(world: &World, look: impl FnOnce(&str) -> Output) -> Output {
    let args = ["sub", "elsewhere", "--listen", "tcp:127.0.0.1:0"];
    let mut child = piped(&mut world.tool(&args, &[]));
    let mut said = Vec::new();
    let mut byte = [0];
    let notes = child.stderr.as_mut().unwrap();
    while notes.read_exact(&mut byte).is_ok() && byte != *b"\n" {
        said.push(byte[0]);
    }
    let said = String::from_utf8(said).unwrap();
    let output = look(said.strip_prefix("listening on ").unwrap());
    child.kill().unwrap();
    child.wait().unwrap();
    output
}

fn nobody_answers(world: &World, more: &[&str]) -> Output {
    elsewhere(world, |at| {
        support::output(&mut world.tool(&["get", "a", "--connect", at], more))
    })
}

fn nobody_subscribes(world: &World, more: &[&str]) -> Output {
    elsewhere(world, |at| {
        support::output(&mut world.tool(&["pub", "a", "1", "--peer", "--connect", at], more))
    })
}

fn no_subscriber_comes(world: &World, more: &[&str]) -> Output {
    elsewhere(world, |at| {
        let args = ["pub", "a", "1", "--connect", at, "--wait-subscriber=50ms"];
        support::output(&mut world.tool(&args, more))
    })
}

/// Exit codes that the book has.
fn is_documented(code: i32) -> bool {
    matches!(code, 1..=16 | 64 | 69 | 70)
}

/// What Rust prints for itself: `Name { field: ...`.
fn has_debug(text: &str) -> bool {
    let is_name = |word: &str| word.starts_with(|char: char| char.is_ascii_uppercase());
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_struct =
        |three: &[&str]| is_name(three[0]) && three[1] == "{" && three[2].ends_with(':');
    words.windows(3).any(is_struct) || ["Some(", "Err(", "Ok("].iter().any(|it| text.contains(it))
}

/// What is wrong with a text for people.
fn faults(mistake: &Mistake, output: &Output) -> Vec<String> {
    let raw = String::from_utf8_lossy(&output.stderr).into_owned();
    let said = complaint(output);
    let mut faults = Vec::new();
    if output.status.code() != Some(mistake.code) {
        faults.push(format!("it ended with {}", output.status));
    }
    for words in mistake.says {
        // Lines break also behind a dash or a slash.
        let packed = |text: &str| text.replace(char::is_whitespace, "");
        if !packed(&said).contains(&packed(words)) {
            faults.push(format!("it does not say {words:?}"));
        }
    }
    let mut lines = raw.lines().map(|line| line.trim_start_matches([' ', '=']));
    if !lines.any(|line| line.starts_with("help: ")) {
        faults.push("it has no line of help".into());
    }
    if raw.contains('\x1b') {
        faults.push("it has escape sequences".into());
    }
    if has_debug(&raw) {
        faults.push("it shows values of the program".into());
    }
    faults
}

/// What is wrong with an error for programs.
fn faults_of_json(mistake: &Mistake, output: &Output) -> Vec<String> {
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().unwrap_or_default();
    let Ok(value) = serde_json::from_str::<Value>(last) else {
        return vec![format!("it is no JSON: {said}")];
    };
    let error = &value["error"];
    let mut faults = Vec::new();
    if error["exit"] != mistake.code {
        faults.push(format!("its JSON says {}", error["exit"]));
    }
    for name in ["code", "what", "help"] {
        if error[name].as_str().is_none_or(str::is_empty) {
            faults.push(format!("its JSON has no {name}: {value}"));
        }
    }
    faults
}

#[test]
fn every_mistake_is_met_with_its_cause_and_its_remedy() {
    let world = World::new();
    let mut all = Vec::new();
    for mistake in MISTAKES {
        assert!(is_documented(mistake.code), "{}", mistake.name);
        let shown = world.run(mistake, &[]);
        let mut faults = faults(mistake, &shown);
        faults.extend(faults_of_json(mistake, &world.run(mistake, &["--json"])));
        if !faults.is_empty() {
            let said = String::from_utf8_lossy(&shown.stderr);
            all.push(format!("{}: {}\n{said}", mistake.name, faults.join("; ")));
        }
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
    world.server.stop();
    world.shared.stop();
}

#[test]
fn there_are_forty_mistakes_and_each_has_a_name_of_its_own() {
    let mut names: Vec<&str> = MISTAKES.iter().map(|mistake| mistake.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), MISTAKES.len());
    assert!(names.len() >= 40);
}
