//! The command `throughline`: arguments in, exit code out. Everything else is [`throughline::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(throughline::cli::run(std::env::args_os()))
}
