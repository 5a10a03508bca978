// Build information that every plug-in contains, so that one built for another Millrace is refused
// before any of its code runs. millrace_add_plugin (docs/plugins.md) adds it; a build without CMake
// needs MILLRACE_PLUGIN at namespace scope in one source file of the shared object.
#pragma once

#include <torch/version.h>

#include <cstddef>  // defines the macros that identify the standard library

#include "millrace/plugins/build_id.h"

#define MILLRACE_TEXT_OF(value) #value
#define MILLRACE_TEXT(value) MILLRACE_TEXT_OF(value)

#if defined(__clang__)
#define MILLRACE_COMPILER "Clang " MILLRACE_TEXT(__clang_major__)
#else
#define MILLRACE_COMPILER "GCC " MILLRACE_TEXT(__GNUC__)
#endif

#if defined(_LIBCPP_VERSION)
#define MILLRACE_LIBRARY "libc++ " MILLRACE_TEXT(_LIBCPP_VERSION)
#elif defined(_GLIBCXX_DEBUG)
#define MILLRACE_LIBRARY "libstdc++ " MILLRACE_TEXT(_GLIBCXX_RELEASE) " in debug mode"
#elif _GLIBCXX_USE_CXX11_ABI
#define MILLRACE_LIBRARY "libstdc++ " MILLRACE_TEXT(_GLIBCXX_RELEASE)
#else
#define MILLRACE_LIBRARY "libstdc++ " MILLRACE_TEXT(_GLIBCXX_RELEASE) " with the old ABI"
#endif

/// Properties that two objects must share to work in one process, one per line. Optimisation,
/// NDEBUG and debug information do not change layouts and are not included.
#define MILLRACE_ABI                                                                              \
  "Millrace " MILLRACE_RELEASE "\npublic headers " MILLRACE_PUBLIC_HEADERS "\n" MILLRACE_COMPILER \
  "\n" MILLRACE_LIBRARY "\nlibtorch " TORCH_VERSION

/// The section of the shared object that contains MILLRACE_ABI.
#define MILLRACE_PLUGIN_SECTION ".millrace_plugin"

/// Declares libraries that must be present before the plug-in is opened. `lines` has a line "FILE:
/// description\n" per library. The plug-in may use their symbols. If one is missing, the plug-in is
/// refused with its description.
#define MILLRACE_PLUGIN_NEEDS_SECTION ".millrace_needs"
#define MILLRACE_PLUGIN_NEEDS(lines)                                                \
  extern "C" {                                                                      \
  extern __attribute__((visibility("default"))) const char millrace_plugin_needs[]; \
  __attribute__((used, section(MILLRACE_PLUGIN_NEEDS_SECTION)))                     \
  const char millrace_plugin_needs[] = lines;                                       \
  }

/// Declares that the shared object is a plug-in for this Millrace.
#define MILLRACE_PLUGIN                                                                      \
  extern "C" {                                                                               \
  extern __attribute__((visibility("default"))) const char millrace_plugin_abi[];            \
  __attribute__((used, section(MILLRACE_PLUGIN_SECTION))) const char millrace_plugin_abi[] = \
      MILLRACE_ABI;                                                                          \
  }
