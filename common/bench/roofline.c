#include "common/bench/roofline.h"

#include <math.h>

double roofline_least_ms(const struct roofline *roofs, double flops, double bytes) {
    return 1e3 * fmax(flops / roofs->flops_per_s, bytes / roofs->bytes_per_s);
}

double roofline_share(const struct roofline *roofs, double flops, double bytes, double ms) {
    return roofline_least_ms(roofs, flops, bytes) / ms;
}
