//! The images that serve calls with all memory in statics, on a Cortex-M4.

use crate::Result;
use crate::budget::Figures;
use crate::calls::{self, Services};
use crate::emulator::Emulator;
use crate::image::Image;
use crate::machine::{M0, RPC};

/// Runs each of them, and takes its figures.
pub fn run(figures: &mut Figures) -> Result<()> {
    for name in [
        "rpc_server",
        "rpc_server_128",
        "rpc_server_call",
        "rpc_client",
    ] {
        let image = Image::read(RPC, name)?;
        let mut board = Emulator::start(RPC, &image)?;
        let calls = match name {
            "rpc_client" => calls::both_ways(board.uart()?),
            _ => calls::through_uart(board.uart()?, Services::CACHE),
        };
        let calls = calls.map_err(|error| format!("{name}: {error}"))?;
        println!("{name}: {calls} calls answered as they must be");
        figures.add(name, "flash", image.flash);
        figures.add(name, "flash_m0", Image::read(M0, name)?.flash);
        figures.add(name, "ram_static", image.ram);
        figures.add(name, "stack", board.stack_used(&image)?);
    }
    Ok(())
}
