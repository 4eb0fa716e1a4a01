use sinew::rpc::packet::{self, Packet};

/// The input is a packet as it arrived. Whatever is accepted, written again, is the same packet,
/// and takes no more room than the same fields were given.
pub fn packet(data: &[u8]) {
    let Ok(read) = Packet::decode(data) else {
        return;
    };
    let Packet {
        packet_type,
        route,
        payload,
        status,
    } = read;
    // A type is written as any varint: up to four bytes more than the known ones.
    let mut place = vec![0; packet::HEADER_MAX + 4 + payload.len()];
    let len = packet::encode(&mut place, packet_type, &route, payload, status)
        .expect("the bound of a header");
    assert_eq!(Packet::decode(&place[..len]), Ok(read));
    // Field order and the shortest varints: nothing shorter says the same.
    assert!(len <= data.len());
    assert_eq!(
        packet::encode(&mut place[..len - 1], packet_type, &route, payload, status),
        None
    );
}
