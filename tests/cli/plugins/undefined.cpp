// Uses an undefined function.
namespace millrace {

int nobody_has_this(double);

int used() { return nobody_has_this(1); }

}  // namespace millrace
