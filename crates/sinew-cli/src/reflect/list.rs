//! `sinew list`: which services and methods there are.

use prost_reflect::{DescriptorPool, MethodDescriptor, ServiceDescriptor};
use serde_json::json;

use super::proto::signature;
use crate::endpoint::At;
use crate::failure::Failure;
use crate::output;
use crate::silence::Timeout;

/// List the services that a server has, and their methods.
///
/// The server says it by itself where it serves sinew.Reflection.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    at: At,
    #[command(flatten)]
    silence: Timeout,
}

const EXAMPLES: &str = "Examples:
  sinew list tcp:localhost:33000
  sinew list qemu:firmware/target/thumbv7m-none-eabi/release/tell_all --json";

pub fn run(args: Args) -> Result<(), Failure> {
    let endpoint = args.at.endpoint()?;
    let (_, pool) = super::ask(&endpoint, args.silence.patience())?;
    match output::is_json() {
        true => output::line(&as_json(&pool).to_string()),
        false => output::line(as_text(&pool).trim_end()),
    }
}

fn services(pool: &DescriptorPool) -> Vec<ServiceDescriptor> {
    let mut services: Vec<_> = pool.services().collect();
    services.sort_by(|a, b| a.full_name().cmp(b.full_name()));
    services
}

fn as_text(pool: &DescriptorPool) -> String {
    let mut text = String::new();
    for service in services(pool) {
        text += &format!("{}\n", service.full_name());
        let methods: Vec<MethodDescriptor> = service.methods().collect();
        let width = methods.iter().map(|it| it.name().len()).max().unwrap_or(0);
        for method in methods {
            let (takes, gives) = signature(&method, |message| message.name().to_owned());
            text += &format!("  {:width$}  {takes} -> {gives}\n", method.name());
        }
    }
    match text.is_empty() {
        true => "no services".into(),
        false => text,
    }
}

fn as_json(pool: &DescriptorPool) -> serde_json::Value {
    let method = |method: MethodDescriptor| {
        json!({
            "name": method.name(),
            "request": method.input().full_name(),
            "response": method.output().full_name(),
            "client_streams": method.is_client_streaming(),
            "server_streams": method.is_server_streaming(),
        })
    };
    let service = |service: ServiceDescriptor| {
        let methods: Vec<_> = service.methods().map(method).collect();
        json!({ "name": service.full_name(), "methods": methods })
    };
    let services: Vec<_> = services(pool).into_iter().map(service).collect();
    json!({ "services": services })
}
