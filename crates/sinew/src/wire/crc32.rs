//! CRC-32/IEEE, reflected, as in zlib (specs/pw_rpc.md, section 8).
