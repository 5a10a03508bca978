// One record of "annotations" in a COCO file.
#pragma once

#include "millrace/coco/data/json.h"
#include "millrace/coco/data/plain_json.h"
#include "millrace/coco/data/records.h"

namespace millrace::coco {

/// Appends an object that begins at `at` to the records. Throws Wrong.
void read_annotation(json::object fields, const char* at, Records& records);

/// The same for one that begins where `text` is. False, and records that must be thrown away, where
/// it is not plain or not sound: then `read_annotation` reads it or says what is wrong.
bool read_plain_annotation(PlainJson& text, Records& records);

}  // namespace millrace::coco
