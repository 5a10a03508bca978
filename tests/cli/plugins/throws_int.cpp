// Throws something odd while it is loaded.
namespace {

int complain() { throw 7; }
const int value = complain();

}  // namespace
