//! Opcodes with names and types: five words as what they mean.

use core::marker::PhantomData;
use core::task::Waker;

use super::super::handles::EndRef;
use super::handle::{Call, CallError, Pending};
use super::memory::{Buffer, Loan};

/// What one word of a message can say.
pub trait Word {
    /// Its name: part of the hash of the opcodes.
    const NAME: &'static str;
    /// As a word.
    fn to_word(self) -> u32;
    /// From a word; whatever stands there is something.
    fn from_word(word: u32) -> Self;
}

macro_rules! words {
    ($($number:ty),*) => {
        $(
            impl Word for $number {
                const NAME: &'static str = stringify!($number);
                #[inline]
                fn to_word(self) -> u32 {
                    self as u32
                }
                #[inline]
                fn from_word(word: u32) -> Self {
                    word as $number
                }
            }
        )*
    };
}

words!(u8, u16, u32, i8, i16, i32);

impl Word for bool {
    const NAME: &'static str = "bool";
    #[inline]
    fn to_word(self) -> u32 {
        u32::from(self)
    }
    #[inline]
    fn from_word(word: u32) -> Self {
        word != 0
    }
}

impl Word for f32 {
    const NAME: &'static str = "f32";
    #[inline]
    fn to_word(self) -> u32 {
        self.to_bits()
    }
    #[inline]
    fn from_word(word: u32) -> Self {
        f32::from_bits(word)
    }
}

/// Up to five [`Word`]s: a word, or a tuple.
pub trait Words {
    /// As words, the rest 0.
    fn to_words(self) -> [u32; 5];
    /// From words.
    fn from_words(words: [u32; 5]) -> Self;
}

impl<W: Word> Words for W {
    #[inline]
    fn to_words(self) -> [u32; 5] {
        [self.to_word(), 0, 0, 0, 0]
    }
    #[inline]
    fn from_words([word, ..]: [u32; 5]) -> Self {
        W::from_word(word)
    }
}

macro_rules! tuples {
    ($(($($part:ident $zero:literal)*)),*) => {
        $(
            impl<$($part: Word),*> Words for ($($part,)*) {
                #[inline]
                #[allow(non_snake_case)]
                fn to_words(self) -> [u32; 5] {
                    let ($($part,)*) = self;
                    let mut words = [0; 5];
                    let all: &[u32] = &[$($part.to_word()),*];
                    for (to, from) in words.iter_mut().zip(all) {
                        *to = *from;
                    }
                    words
                }
                #[inline]
                fn from_words(words: [u32; 5]) -> Self {
                    ($($part::from_word(words[$zero]),)*)
                }
            }
        )*
    };
}

tuples!(
    (A 0), (A 0 B 1), (A 0 B 1 C 2), (A 0 B 1 C 2 D 3), (A 0 B 1 C 2 D 3 E 4)
);

impl Words for () {
    #[inline]
    fn to_words(self) -> [u32; 5] {
        [0; 5]
    }
    #[inline]
    fn from_words(_: [u32; 5]) -> Self {}
}

/// A [`Call`] whose answer is of a type.
#[must_use = "dropped, it gives the answer up"]
pub struct TypedCall<R: EndRef, A: Words> {
    call: Call<R>,
    answer: PhantomData<fn() -> A>,
}

impl<R: EndRef, A: Words> TypedCall<R, A> {
    /// What the answer of a call means.
    pub fn new(call: Call<R>) -> TypedCall<R, A> {
        TypedCall {
            call,
            answer: PhantomData,
        }
    }

    /// As [`Call::poll`].
    #[inline]
    pub fn poll(&mut self) -> Result<Option<A>, CallError> {
        Ok(self.call.poll()?.map(A::from_words))
    }

    /// As [`Call::arm`].
    pub fn arm(&self, waker: &Waker) {
        self.call.arm(waker);
    }
}

impl<R: EndRef, A: Words> Pending for TypedCall<R, A> {
    type Answer = A;

    fn poll(&mut self) -> Result<Option<A>, CallError> {
        TypedCall::poll(self)
    }

    fn arm(&self, waker: &Waker) {
        TypedCall::arm(self, waker);
    }
}

/// A [`Loan`] whose answer is of a type.
#[must_use = "dropped, it gives the answer up"]
pub struct TypedLoan<R: EndRef, A: Words> {
    loan: Loan<R>,
    answer: PhantomData<fn() -> A>,
}

impl<R: EndRef, A: Words> TypedLoan<R, A> {
    /// What the answer of a loan means.
    pub fn new(loan: Loan<R>) -> TypedLoan<R, A> {
        TypedLoan {
            loan,
            answer: PhantomData,
        }
    }

    /// As [`Loan::poll`]: the answer, and the memory for the next message.
    #[inline]
    pub fn poll(&mut self) -> Result<Option<(A, Buffer<R>)>, CallError> {
        let answered = self.loan.poll()?;
        Ok(answered.map(|returned| (A::from_words(returned.words), returned.into_buffer())))
    }

    /// As [`Loan::arm`].
    pub fn arm(&self, waker: &Waker) {
        self.loan.arm(waker);
    }
}

impl<R: EndRef, A: Words> Pending for TypedLoan<R, A> {
    type Answer = (A, Buffer<R>);

    fn poll(&mut self) -> Result<Option<(A, Buffer<R>)>, CallError> {
        TypedLoan::poll(self)
    }

    fn arm(&self, waker: &Waker) {
        TypedLoan::arm(self, waker);
    }
}

/// Makes client and server of opcodes with names and types.
///
/// `Client` has a method for each, `Service` is the trait of who does it, and `serve` takes a message
/// to it: an opcode that is not there is answered so. `HASH` goes into the channel
/// ([`Channel::typed`](crate::domain::Channel::typed)), so that only sides with the same opcodes fit.
///
/// Arguments and answers are [`Words`](crate::domain::Words): numbers of up to 32 bits, `bool`, `f32`, or a
/// tuple of up to five. `new` and `messages` are names of the client's own.
///
/// A method with `[move]`, `[lend]` or `[lend_mut]` behind its name takes memory, and up to three words
/// beside it: see [`Buffer`](crate::domain::Buffer). One with `[lend_mut]` is answered with the bytes of the
/// block that are the answer.
///
/// ```
/// sinew_shm::opcodes! {
///     /// A motor.
///     pub mod motor {
///         /// Stops at once.
///         1 => fn stop();
///         /// Turns per minute, up to which it then goes.
///         2 => fn set_speed(rpm: u32, ramp: u16) -> u32;
///         3 => fn place() -> (i32, f32);
///         /// A table of speeds, for good.
///         4 => fn load[move](version: u32);
///         /// How much of a table it could do.
///         5 => fn check[lend]() -> u32;
///         /// Fills the memory up with what was measured since a time.
///         6 => fn measured[lend_mut](since: u32);
///     }
/// }
/// use sinew_shm::domain::{CallError, Channel, Config, EndRef, Given, Message, Pool, Refused};
///
/// const LINK: Config = Config::new(&[
///     Channel::messages(5, "motor", 8, 4).with_memory(Pool::new(2, 4096)).typed(motor::HASH),
/// ]);
///
/// struct Motor(u32);
///
/// impl motor::Service for Motor {
///     fn stop(&mut self) {
///         self.0 = 0;
///     }
///     fn set_speed(&mut self, rpm: u32, _ramp: u16) -> u32 {
///         self.0 = rpm.min(3000);
///         self.0
///     }
///     fn place(&mut self) -> (i32, f32) {
///         (-1, 0.5)
///     }
///     fn load<R: EndRef>(&mut self, table: Given<R>, _version: u32) {
///         # drop(table);
///         // Kept as long as it takes, or passed on.
///     }
///     fn check<R: EndRef>(&mut self, table: &Given<R>) -> u32 {
///         let mut first = [0; 4];
///         let _ = table.copy_to(&mut first);
///         u32::from_le_bytes(first).min(3000)
///     }
///     fn measured<R: EndRef>(&mut self, memory: &mut Given<R>, _since: u32) -> core::ops::Range<usize> {
///         match memory.blank(4) {
///             Some(place) => place.copy_from_slice(&self.0.to_le_bytes()),
///             None => return 0..0,
///         }
///         0..4
///     }
/// }
///
/// fn ask<R: EndRef>(motor: &motor::Client<R>) -> Result<(), Refused> {
///     motor.stop()?;
///     let mut call = motor.set_speed(1200, 10)?;
///     let speed: Result<Option<u32>, CallError> = call.poll();
///     # let _ = speed;
///     let memory = motor.messages().memory(400)?;
///     let mut loan = motor.measured(memory, 0..0, 17)?;
///     if let Ok(Some(measured)) = loan.poll() {
///         let mut speeds = [0; 400];
///         let _ = measured.copy_to(&mut speeds);
///     }
///     Ok(())
/// }
///
/// fn answer<R: EndRef>(motor: &mut Motor, message: Message<R>) {
///     motor::serve(motor, message);
/// }
/// ```
#[macro_export]
macro_rules! opcodes {
    (
        $(#[$about:meta])*
        $public:vis mod $module:ident {
            $(
                $(#[$method_about:meta])*
                $code:literal => fn $name:ident $([$how:tt])? ( $($arg:ident : $kind:ty),* $(,)? )
                    $(-> $answer:ty)? ;
            )*
        }
    ) => {
        $(#[$about])*
        #[allow(missing_docs)]
        $public mod $module {
            #[allow(unused_imports)]
            use super::*;
            #[allow(unused_imports)]
            use $crate::domain::{
                Buffer, EndRef, Given, Loan, Message, Messages, Passing, Refused, TypedCall, TypedLoan,
                Unsent, Words, hash_of, join,
            };

            // Two methods of one opcode: the second would never be called.
            const _: () = {
                let codes: &[u32] = &[$($code),*];
                let mut at = 0;
                while at < codes.len() {
                    let mut before = 0;
                    while before < at {
                        assert!(codes[before] != codes[at], "two methods have the same opcode");
                        before += 1;
                    }
                    at += 1;
                }
            };

            /// Of all opcodes, their names and types: the same on both sides.
            pub const HASH: u32 = {
                let hash = hash_of("opcodes");
                $(
                    let hash = join(join(hash, $code), hash_of(stringify!($name)));
                    $(let hash = join(hash, hash_of(stringify!([$how])));)?
                    $(let hash = join(hash, hash_of(stringify!($kind)));)*
                    $(let hash = join(hash, hash_of(stringify!(-> $answer)));)?
                )*
                hash
            };

            /// Who does it.
            pub trait Service {
                $(
                    $crate::opcodes! {
                        @do [$(#[$method_about])*] $name $([$how])? ($($arg: $kind),*) $(-> $answer)?
                    }
                )*
            }

            /// Who asks for it.
            pub struct Client<R: EndRef>(Messages<R>);

            impl<R: EndRef> Client<R> {
                /// Over this channel.
                pub fn new(messages: Messages<R>) -> Self {
                    Client(messages)
                }

                /// The channel.
                pub fn messages(&self) -> &Messages<R> {
                    &self.0
                }

                $(
                    $crate::opcodes! {
                        @ask [$(#[$method_about])*] $code $name $([$how])?
                            ($($arg: $kind),*) $(-> $answer)?
                    }
                )*
            }

            /// Does what a message asks for, and answers it.
            pub fn serve<R: EndRef>(service: &mut impl Service, message: Message<R>) {
                match message.opcode {
                    $(
                        $code => {
                            let ($($arg,)*): ($($kind,)*) = Words::from_words(message.words);
                            $crate::opcodes! {
                                @serve service message $name $([$how])? ($($arg),*) $(-> $answer)?
                            }
                        }
                    )*
                    _ => message.unknown(),
                }
            }
        }
    };
    // What who does it has to do.
    (@do [$($about:tt)*] $name:ident ($($arg:ident : $kind:ty),*) $(-> $answer:ty)?) => {
        $($about)*
        fn $name(&mut self $(, $arg: $kind)*) $(-> $answer)?;
    };
    (@do [$($about:tt)*] $name:ident [move] ($($arg:ident : $kind:ty),*)) => {
        $($about)*
        fn $name<R: EndRef>(&mut self, memory: Given<R> $(, $arg: $kind)*);
    };
    (@do [$($about:tt)*] $name:ident [lend] ($($arg:ident : $kind:ty),*) -> $answer:ty) => {
        $($about)*
        fn $name<R: EndRef>(&mut self, memory: &Given<R> $(, $arg: $kind)*) -> $answer;
    };
    (@do [$($about:tt)*] $name:ident [lend_mut] ($($arg:ident : $kind:ty),*)) => {
        $($about)*
        fn $name<R: EndRef>(
            &mut self,
            memory: &mut Given<R>
            $(, $arg: $kind)*
        ) -> ::core::ops::Range<usize>;
    };
    // How it is asked for.
    (@ask [$($about:tt)*] $code:literal $name:ident ($($arg:ident : $kind:ty),*)) => {
        $($about)*
        pub fn $name(&self $(, $arg: $kind)*) -> ::core::result::Result<(), Refused> {
            self.0.send($code, ($($arg,)*).to_words())
        }
    };
    (@ask [$($about:tt)*] $code:literal $name:ident ($($arg:ident : $kind:ty),*) -> $answer:ty) => {
        $($about)*
        pub fn $name(&self $(, $arg: $kind)*) -> ::core::result::Result<TypedCall<R, $answer>, Refused> {
            let call = self.0.call($code, ($($arg,)*).to_words())?;
            ::core::result::Result::Ok(TypedCall::new(call))
        }
    };
    (@ask [$($about:tt)*] $code:literal $name:ident [move] ($($arg:ident : $kind:ty),*)) => {
        $($about)*
        pub fn $name(
            &self,
            memory: Buffer<R>,
            valid: ::core::ops::Range<usize>
            $(, $arg: $kind)*
        ) -> ::core::result::Result<(), Unsent<R>> {
            memory.give($code, valid, $crate::opcodes!(@three $($arg)*))
        }
    };
    (@ask [$($about:tt)*] $code:literal $name:ident [lend] ($($arg:ident : $kind:ty),*) -> $answer:ty) => {
        $($about)*
        pub fn $name(
            &self,
            memory: Buffer<R>,
            valid: ::core::ops::Range<usize>
            $(, $arg: $kind)*
        ) -> ::core::result::Result<TypedLoan<R, $answer>, Unsent<R>> {
            let loan = memory.lend($code, valid, $crate::opcodes!(@three $($arg)*))?;
            ::core::result::Result::Ok(TypedLoan::new(loan))
        }
    };
    (@ask [$($about:tt)*] $code:literal $name:ident [lend_mut] ($($arg:ident : $kind:ty),*)) => {
        $($about)*
        pub fn $name(
            &self,
            memory: Buffer<R>,
            valid: ::core::ops::Range<usize>
            $(, $arg: $kind)*
        ) -> ::core::result::Result<Loan<R>, Unsent<R>> {
            memory.lend_mut($code, valid, $crate::opcodes!(@three $($arg)*))
        }
    };
    (@three $($arg:ident)*) => {{
        const ARGUMENTS: &[&str] = &[$(stringify!($arg)),*];
        const { assert!(ARGUMENTS.len() <= 3, "beside memory there are three words") };
        let [first, second, third, ..] = ($($arg,)*).to_words();
        [first, second, third]
    }};
    // How it is answered.
    (@serve $service:ident $message:ident $name:ident ($($arg:ident),*)) => {
        match $message.memory {
            ::core::option::Option::None => $service.$name($($arg),*),
            _ => $message.unknown(),
        }
    };
    (@serve $service:ident $message:ident $name:ident ($($arg:ident),*) -> $answer:ty) => {
        match $message.memory {
            ::core::option::Option::None => {
                let answer: $answer = $service.$name($($arg),*);
                $message.answer(answer.to_words());
            }
            _ => $message.unknown(),
        }
    };
    (@serve $service:ident $message:ident $name:ident [move] ($($arg:ident),*)) => {
        match $message.memory {
            ::core::option::Option::Some(memory) if memory.passing() == Passing::Move => $service.$name(memory $(, $arg)*),
            _ => $message.unknown(),
        }
    };
    (@serve $service:ident $message:ident $name:ident [lend] ($($arg:ident),*) -> $answer:ty) => {
        match $message.memory {
            ::core::option::Option::Some(memory) if memory.passing() == Passing::Lend => {
                let answer: $answer = $service.$name(&memory $(, $arg)*);
                memory.answer(answer.to_words());
            }
            _ => $message.unknown(),
        }
    };
    (@serve $service:ident $message:ident $name:ident [lend_mut] ($($arg:ident),*)) => {
        match $message.memory {
            ::core::option::Option::Some(mut memory) if memory.passing() == Passing::LendMut => {
                let valid = $service.$name(&mut memory $(, $arg)*);
                memory.answer_with(valid);
            }
            _ => $message.unknown(),
        }
    };
}
