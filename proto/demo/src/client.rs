//! What a client does: the same in every placement.

use sinew::rpc::streams::*;
use sinew::rpc::{CallError, Status};

use crate::demo::cache::{AsyncClient, AsyncReach, Client, Reach};
use crate::demo::{GetValueRequest, Num, SetValueRequest, kinds};

/// Has the cache remember `value`, asks for it, and returns the answer: two calls.
pub fn exercise<R: Reach>(cache: &mut Client<R>, value: i32) -> Result<i32, CallError> {
    cache.set_value(&SetValueRequest { value })?;
    Ok(cache.get_value(&GetValueRequest {})?.value)
}

/// [`exercise`] for a caller that must not block.
pub async fn exercise_async<R: AsyncReach>(
    cache: &mut AsyncClient<R>,
    value: i32,
) -> Result<i32, CallError> {
    cache.set_value(&SetValueRequest { value }).await?;
    Ok(cache.get_value(&GetValueRequest {}).await?.value)
}

/// What `demo.Kinds` answered to [`exercise_kinds`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KindsAnswers {
    /// Twice the number of items.
    pub doubled: u32,
    /// The sum of all numbers below the number of items.
    pub summed: u32,
}

/// Calls all four kinds, the three streams at the same time with `items` items each. A stream
/// whose answers are not these items in order, and no more, is reported as DATA_LOSS.
pub fn exercise_kinds<R: kinds::Reach>(
    kinds: &mut kinds::Client<R>,
    items: u32,
) -> Result<KindsAnswers, CallError> {
    let mut count = kinds.count(&Num { n: items })?;
    let mut sum = kinds.sum()?;
    let mut echo = kinds.echo_all()?;
    for n in 0..items {
        sum.send(&Num { n })?;
        echo.send(&Num { n })?;
        expect(count.next()?, Some(n))?;
        expect(echo.next()?, Some(n))?;
    }
    echo.complete()?;
    expect(count.next()?, None)?;
    expect(echo.next()?, None)?;
    Ok(KindsAnswers {
        doubled: kinds.double(&Num { n: items })?.n,
        summed: sum.finish_and_wait()?.n,
    })
}

/// [`exercise_kinds`] for a caller that must not block.
pub async fn exercise_kinds_async<R: kinds::AsyncReach>(
    kinds: &mut kinds::AsyncClient<R>,
    items: u32,
) -> Result<KindsAnswers, CallError> {
    let mut count = kinds.count(&Num { n: items }).await?;
    let mut sum = kinds.sum().await?;
    let mut echo = kinds.echo_all().await?;
    for n in 0..items {
        sum.send(&Num { n }).await?;
        echo.send(&Num { n }).await?;
        expect(count.next().await?, Some(n))?;
        expect(echo.next().await?, Some(n))?;
    }
    echo.complete().await?;
    expect(count.next().await?, None)?;
    expect(echo.next().await?, None)?;
    Ok(KindsAnswers {
        doubled: kinds.double(&Num { n: items }).await?.n,
        summed: sum.finish_and_wait().await?.n,
    })
}

fn expect(item: Option<Num>, n: Option<u32>) -> Result<(), CallError> {
    if item.map(|item| item.n) == n {
        Ok(())
    } else {
        Err(CallError::Status(Status::DATA_LOSS))
    }
}
