// The shared object that reads over HTTP, opened on first use.
#pragma once

#include "millrace/dataflow/store/remote/http/http.h"

namespace millrace {

/// The function in http.so. The first call opens it, with libcurl. Throws Error if that cannot be
/// done. Any thread.
HttpGet& http_get();

}  // namespace millrace
