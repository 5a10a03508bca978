// One record of "annotations" in a COCO file.
#pragma once

#include "millrace/coco/data/json.h"
#include "millrace/coco/data/records.h"

namespace millrace::coco {

/// Reads the JSON object at the reader's position and appends it to the records. Throws Wrong.
void read_annotation(JsonReader& json, Records& records);

}  // namespace millrace::coco
