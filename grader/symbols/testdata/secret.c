#include "grader/symbols/testdata/beside.h"

int beside_secret(int x) {
    return x;
}
