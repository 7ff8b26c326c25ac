/**
 * @file angles.h
 * @brief The table of cosines and sines that endless_attention() is given.
 */
#ifndef WARPBOOK_LABS_14_ENDLESS_TEXT_GIVEN_ANGLES_H_
#define WARPBOOK_LABS_14_ENDLESS_TEXT_GIVEN_ANGLES_H_

#include <stddef.h>

/** angles (places, rotary / 2, 2), host: cosine and sine of place * theta^(-2i / rotary). */
void endless_angles(float *angles, size_t places, size_t rotary, double theta);

#endif
