//! A schema comes back whole in pieces of any size, and what is asked beyond it is refused.

use prost_reflect::DescriptorPool;
use sinew::rpc::{CallError, Direct, Schema, Status};
use sinew_services::reflection::{Client, Schemas};
use sinew_services::{DescribeRequest, ReadRequest};

static SCHEMAS: [Schema; 2] = [
    sinew_demo::SCHEMA,
    Schema {
        set: &[],
        hash: 0xe3b0_c442_98fc_1c14, // of nothing
    },
];

fn read(limit: u32) -> Vec<u8> {
    let mut device = Client(Direct(&mut Schemas(&SCHEMAS)));
    let described = device.describe(&DescribeRequest { schema: 0 }).unwrap();
    assert_eq!(described.schemas, 2);
    assert_eq!(described.hash, sinew_demo::SCHEMA.hash);
    let mut set = Vec::new();
    while set.len() < described.size as usize {
        let offset = set.len() as u32;
        let wanted = ReadRequest {
            schema: 0,
            offset,
            limit,
        };
        let piece = device.read(&wanted).unwrap();
        assert!(!piece.data.is_empty() && piece.data.len() as u32 <= limit);
        set.extend_from_slice(&piece.data);
    }
    set
}

#[test]
fn schema_comes_back_whole_in_pieces_of_any_size() {
    for limit in [1, 7, 191, 192, 193, u32::MAX] {
        assert_eq!(read(limit), sinew_demo::SCHEMA.set, "{limit}");
    }
}

#[test]
fn schema_has_the_services_and_their_comments() {
    let pool = DescriptorPool::decode(&*read(64)).unwrap();
    let kinds = pool.get_service_by_name("demo.Kinds").unwrap();
    let file = kinds.parent_file();
    let info = file.file_descriptor_proto().source_code_info.as_ref();
    let comment = info
        .unwrap()
        .location
        .iter()
        .find(|it| it.path == kinds.path());
    assert_eq!(
        comment.unwrap().leading_comments(),
        " One method of each kind.\n"
    );
}

#[test]
fn what_there_is_not_is_out_of_range() {
    let mut device = Client(Direct(&mut Schemas(&SCHEMAS)));
    let out_of_range = Err(CallError::Status(Status::OUT_OF_RANGE));
    for schema in [2, u32::MAX] {
        let described = device.describe(&DescribeRequest { schema });
        assert_eq!(described.map(drop), out_of_range);
        let wanted = ReadRequest {
            schema,
            offset: 0,
            limit: 1,
        };
        assert_eq!(device.read(&wanted).map(drop), out_of_range);
    }
    let size = sinew_demo::SCHEMA.set.len() as u32;
    let mut read = |offset, limit| {
        let wanted = ReadRequest {
            schema: 0,
            offset,
            limit,
        };
        device.read(&wanted).map(|piece| piece.data.len())
    };
    assert_eq!(read(size, 9), Ok(0));
    assert_eq!(read(size - 1, 9), Ok(1));
    assert_eq!(read(0, 0), Ok(0));
    assert_eq!(
        read(size + 1, 9),
        Err(CallError::Status(Status::OUT_OF_RANGE))
    );
    assert_eq!(
        read(u32::MAX, 9),
        Err(CallError::Status(Status::OUT_OF_RANGE))
    );
}

#[test]
fn schema_that_tools_have_is_told_by_its_hash_alone() {
    static SCHEMAS: [Schema; 1] = [sinew_services::log::SCHEMA.by_hash()];
    let mut device = Client(Direct(&mut Schemas(&SCHEMAS)));
    let described = device.describe(&DescribeRequest { schema: 0 }).unwrap();
    assert_eq!((described.schemas, described.size), (1, 0));
    assert_eq!(described.hash, sinew_services::log::SCHEMA.hash);
    let pool = DescriptorPool::decode(sinew_services::log::SCHEMA.set).unwrap();
    let names: Vec<_> = pool
        .services()
        .map(|it| it.full_name().to_owned())
        .collect();
    assert_eq!(names, ["sinew.Log"]);
}
