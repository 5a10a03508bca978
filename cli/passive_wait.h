// How the threads of libtorch's OpenMP wait for each other.
#pragma once

namespace millrace::cli {

/// Makes OpenMP's threads sleep at barriers instead of spinning. Spinning wins microseconds on an idle
/// machine and loses whole time slices on one where others, our own data flow among them, need the cores.
/// The OpenMP runtime reads its wait policy while it is loaded, before main, so this sets
/// OMP_WAIT_POLICY=passive and executes the program again; it returns in the second run, and at once
/// where the environment already has a policy. Call first thing in main; loading everything again costs 0.2 s.
void wait_passively(char** argv);

}  // namespace millrace::cli
