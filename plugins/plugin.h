// What every plug-in says about itself, so that one built for another Millrace is refused instead of
// crashing. Put MILLRACE_PLUGIN at namespace scope in one source file of the shared object.
#pragma once

/// Goes up whenever a header that plug-ins see changes in a way that breaks them.
#define MILLRACE_ABI 3

/// Declares the shared object a plug-in for this version of Millrace.
#define MILLRACE_PLUGIN                                                         \
  extern "C" __attribute__((visibility("default"))) int millrace_plugin_abi() { \
    return MILLRACE_ABI;                                                        \
  }
