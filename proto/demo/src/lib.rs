//! The demo services (`demo.Cache`, `demo.Kinds`, `pw.rpc.Benchmark`) and a client of them: each
//! written once, used unchanged in every placement.
//!
//! No heap, no std, no link: what a placement adds is the line that names the link.
#![no_std]
#![forbid(unsafe_code)]

mod benchmark_service;
mod cache_service;
mod client;
mod kinds_service;

sinew::include_proto!("demo");

mod made {
    #![allow(missing_docs)] // the comments of the .proto are the docs
    sinew::include_proto!("benchmark");
}

pub use benchmark_service::BenchmarkService;
pub use cache_service::CacheService;
pub use client::{KindsAnswers, exercise, exercise_async, exercise_kinds, exercise_kinds_async};
pub use demo::*;
pub use kinds_service::KindsService;
pub use made::{SCHEMA as BENCHMARK_SCHEMA, pw};
