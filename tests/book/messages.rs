//! Message channels, as the book shows them.

use std::error::Error;

use sinew_shm::domain::{Channel, Config, Messages};
use sinew_shm::linux::link::{Link, Options};

// ANCHOR: opcodes
sinew_shm::opcodes! {
    /// A motor.
    pub mod motor {
        /// Stops at once.
        1 => fn stop();
        /// Turns per minute; up to which it then goes.
        2 => fn set_speed(rpm: u32, ramp: u16) -> u32;
    }
}

const LINK: Config = Config::new(&[Channel::messages(5, "motor", 8, 4).typed(motor::HASH)]);

struct Motor(u32);

impl motor::Service for Motor {
    fn stop(&mut self) {
        self.0 = 0;
    }

    fn set_speed(&mut self, rpm: u32, _ramp: u16) -> u32 {
        self.0 = rpm.min(3000);
        self.0
    }
}
// ANCHOR_END: opcodes

#[test]
fn a_motor_is_asked_and_answers() -> Result<(), Box<dyn Error>> {
    let (near, far): (Link, Link) = Link::pair(LINK, Options::default())?;
    let (near, far) = (near.end(), far.end());
    for _ in 0..3 {
        near.look(0);
        far.look(0);
    }
    let here = Messages::new(far, 5).ok_or("no such channel")?;
    let motor = Messages::new(near, 5).ok_or("no such channel")?;
    let motor_is = motor::Client::new(motor);
    let mut service = Motor(0);
    talk(&motor_is, &here, &mut service)?;
    assert_eq!(service.0, 0);
    Ok(())
}

fn talk<R: sinew_shm::domain::EndRef>(
    motor: &motor::Client<R>,
    here: &Messages<R>,
    service: &mut Motor,
) -> Result<(), Box<dyn Error>> {
    // ANCHOR: ask
    let mut speed = motor.set_speed(5000, 10)?;
    motor.stop()?;
    // ANCHOR_END: ask
    // ANCHOR: serve
    // What is not known is answered so.
    while let Some(message) = here.receive()? {
        motor::serve(service, message);
    }
    // ANCHOR_END: serve
    // ANCHOR: answer
    // Before there is an answer, `None`: then `speed.arm(waker)`, and sleep.
    assert_eq!(speed.poll()?, Some(3000));
    // ANCHOR_END: answer
    Ok(())
}
