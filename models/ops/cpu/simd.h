// Loops that use the vector instructions of the processor at run time.
#pragma once

/// Placed before a function with hot loops: compiles it for AVX2 with FMA and for any x86-64; the
/// loader selects one. Only inlined calls profit. Sanitizers start after the loader, so they get
/// the plain version. MILLRACE_SIMD_512 also compiles for AVX-512, for functions that it makes
/// faster.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define MILLRACE_SIMD [[gnu::target_clones("arch=x86-64-v3", "default")]]
#define MILLRACE_SIMD_512 [[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]]
#else
#define MILLRACE_SIMD
#define MILLRACE_SIMD_512
#endif
