// Throws a value that is not a std::exception while it is loaded.
namespace {

int complain() { throw 7; }
const int value = complain();

}  // namespace
