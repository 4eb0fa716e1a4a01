use sinew::frame::{FrameStats, Framing};

const ROOM: usize = 64;

/// The first byte chooses framing and chunk size; the rest is what the stream brings.
///
/// Chunks change nothing, packets fit the place, every packet comes back from its own frame, and
/// a good frame behind the garbage is received.
pub fn hdlc(data: &[u8]) {
    let Some((&choice, stream)) = data.split_first() else {
        return;
    };
    let framing = match choice % 8 {
        2 | 6 => Framing::Cobs,
        3 => Framing::Length,
        7 => Framing::Zenoh,
        _ => Framing::HDLC,
    };
    let whole = receive(framing, stream, stream.len());
    let chunked = receive(framing, stream, usize::from(choice / 4) + 1);
    assert_eq!(whole, chunked);
    let (packets, stats) = whole;
    assert_eq!(packets.len(), stats.frames as usize);
    for packet in &packets {
        let (again, _) = receive(framing, &encoded(framing, packet), usize::MAX);
        assert_eq!(again.as_slice(), std::slice::from_ref(packet));
    }
    if framing.width().is_none() {
        let mut behind = stream.to_vec();
        behind.extend(encoded(framing, b"~good}"));
        let (packets, _) = receive(framing, &behind, usize::MAX);
        assert_eq!(
            packets.last().map(Vec::as_slice),
            Some(b"~good}".as_slice())
        );
    }
}

fn encoded(framing: Framing, packet: &[u8]) -> Vec<u8> {
    let mut out = vec![0; framing.max_encoded_len(packet.len())];
    let len = framing
        .encode(packet, &mut out)
        .expect("max_encoded_len is enough");
    out.truncate(len);
    out
}

fn receive(framing: Framing, stream: &[u8], chunk: usize) -> (Vec<Vec<u8>>, FrameStats) {
    let mut decoder = framing.decoder();
    let mut place = [0; ROOM];
    let mut packets = Vec::new();
    for mut input in stream.chunks(chunk.max(1)) {
        while let Ok(Some(packet)) = decoder.decode(&mut place, &mut input) {
            packets.push(packet.to_vec());
        }
    }
    (packets, *decoder.stats())
}
