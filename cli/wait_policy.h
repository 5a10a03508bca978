// How the threads of libtorch's OpenMP wait for each other.
#pragma once

namespace millrace::cli {

/// Makes OpenMP's threads spin only briefly at barriers before they sleep. A training step has over a
/// thousand barriers a few microseconds apart. On 2 cores, the sample's recipe: sleeping at once 30 images/s,
/// a thousand spins 47, the runtime's default (hundreds of thousands) 44; with two trainings on
/// those cores 33, 28 and under 10 together.
/// The OpenMP runtime reads this while it is loaded, before main, so the variable is set and the program
/// executed again; it returns in the second run, and at once where the environment already has a policy.
/// Call first thing in main.
void spin_briefly(char** argv);

}  // namespace millrace::cli
