//! Counts the instructions per byte of the HDLC codec.
//!
//! ```text
//! cargo build --release -p sinew --features fast-crc --example hdlc_count
//! valgrind --tool=callgrind --collect-atstart=no --toggle-collect='hdlc_count::measured_*' \
//!     --callgrind-out-file=/dev/null target/release/examples/hdlc_count encode random 256
//! ```
//! Arguments: `encode` or `decode`, `random` or `text`, bytes per packet. The program prints how
//! many packet bytes were measured; divide the collected instructions by them.
use sinew::frame::hdlc::{self, RPC_ADDRESS};
use std::hint::black_box;

const FRAMES: usize = 200;

#[inline(never)]
fn measured_encode(packet: &[u8], out: &mut [u8]) -> usize {
    hdlc::encode(RPC_ADDRESS, black_box(packet), out).expect("out is large enough")
}

#[inline(never)]
fn measured_decode(decoder: &mut hdlc::Decoder, place: &mut [u8], mut input: &[u8]) -> usize {
    decoder
        .decode(place, black_box(&mut input))
        .expect("a good frame")
        .len()
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [direction, content, size] = args.as_slice() else {
        eprintln!("usage: hdlc_count encode|decode random|text BYTES");
        std::process::exit(64);
    };
    let size: usize = size.parse().expect("a number of bytes");
    let mut seed = 0x2545_f491_4f6c_dd1du64;
    let mut bytes = 0;
    let mut out = vec![0; hdlc::max_encoded_len(RPC_ADDRESS, size)];
    let mut place = vec![0; size];
    let mut decoder = hdlc::Decoder::new(RPC_ADDRESS);
    for _ in 0..FRAMES {
        let packet: Vec<u8> = (0..size)
            .map(|_| {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                let byte = (seed >> 24) as u8;
                if content == "text" {
                    b' ' + byte % 90
                } else {
                    byte
                }
            })
            .collect();
        bytes += if direction == "encode" {
            measured_encode(&packet, &mut out);
            size
        } else {
            let len = hdlc::encode(RPC_ADDRESS, &packet, &mut out).expect("out is large enough");
            measured_decode(&mut decoder, &mut place, &out[..len])
        };
    }
    println!("{bytes}");
}
