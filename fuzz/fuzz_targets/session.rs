#![cfg_attr(fuzzing, no_main)]
sinew_fuzz::target!(session);
