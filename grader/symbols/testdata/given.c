#include "grader/symbols/testdata/beside.h"

int given_once(int x) {
    return beside_secret(x);
}

int given_twice(int x) {
    return 2 * x;
}
