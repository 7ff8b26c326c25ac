#include "labs/14_endless_text/given/angles.h"

#include <math.h>

void endless_angles(float *angles, size_t places, size_t rotary, double theta) {
    for (size_t i = 0; i < rotary / 2; i++) {
        double frequency = pow(theta, -2.0 * (double)i / (double)rotary);
        for (size_t s = 0; s < places; s++) {
            float *pair = angles + (s * (rotary / 2) + i) * 2;
            pair[0] = (float)cos((double)s * frequency);
            pair[1] = (float)sin((double)s * frequency);
        }
    }
}
