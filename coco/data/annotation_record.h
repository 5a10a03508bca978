// One record of "annotations" in a COCO file.
#pragma once

#include "millrace/coco/data/json.h"
#include "millrace/coco/data/records.h"

namespace millrace::coco {

/// Appends the object that begins there to the records. Throws Wrong.
void read_annotation(JsonReader& json, Records& records);

}  // namespace millrace::coco
