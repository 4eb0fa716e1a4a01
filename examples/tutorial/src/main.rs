use std::error::Error;
use std::process::ExitCode;

use sinew::rpc::Direct;
use sinew_io::{Client, Server, connect, threads};
use tutorial::home::lamp;
use tutorial::{LampService, evening};

fn main() -> ExitCode {
    if let Err(error) = run() {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn run() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let state = match words.as_slice() {
        // The same thread: a direct call, no bytes.
        ["here"] => evening(&mut lamp::Client(Direct(&mut LampService::default())))?,
        // Another thread, through a block queue.
        ["thread"] => {
            let (near, mut far) = threads::link();
            std::thread::spawn(move || server().serve(&mut far, 1));
            evening(&mut lamp::Client(&Client::new(near, 1)))?
        }
        // Another process or machine.
        ["call", endpoint] => evening(&mut lamp::Client(&connect(&endpoint.parse()?)?))?,
        ["serve", endpoint] => {
            let listening = server().listen(&endpoint.parse()?)?;
            println!("serving home.Lamp on {}", listening.endpoint());
            listening.wait();
            return Ok(());
        }
        _ => return Err("usage: tutorial here | thread | call ENDPOINT | serve ENDPOINT".into()),
    };
    println!("{} %, because of {}", state.percent, state.reason);
    Ok(())
}

fn server() -> Server<lamp::Serve<LampService>> {
    Server::new(lamp::Serve(LampService::default()))
}
