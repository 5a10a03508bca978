// Annotated objects as shapes of the viewer.
#pragma once

#include <vector>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/tools/report/gallery.h"

namespace millrace::cli {

/// Boxes and outlines in pixels of one image; crowds are noted as such.
std::vector<report::Shape> shapes_of(const Instances& objects, double tolerance);

}  // namespace millrace::cli
