#include "common/simt/memory/race/byte_bits.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

enum { WORDS = 32, NIBBLE = 0xf };

#ifdef __AVX2__
/* Eight words at a time: a word's four bits lie in one half of a word of bits. */
bool byte_bits_all_words(const uint64_t *bits, size_t offset, const int32_t *relative) {
    const __m256i low = _mm256_set1_epi32(31), nibble = _mm256_set1_epi32(NIBBLE);
    const int *halves = (const int *)(const void *)bits + offset / 32;
    const __m256i first = _mm256_set1_epi32((int)(offset % 32));
    __m256i all = nibble;
    for (int n = 0; n < WORDS; n += 8) {
        __m256i at = _mm256_loadu_si256((const __m256i *)(const void *)(relative + n));
        at = _mm256_add_epi32(at, first);
        __m256i half = _mm256_i32gather_epi32(halves, _mm256_srai_epi32(at, 5), 4);
        all = _mm256_and_si256(all, _mm256_srlv_epi32(half, _mm256_and_si256(at, low)));
    }
    return _mm256_testc_si256(all, nibble) != 0;
}
#else
bool byte_bits_all_words(const uint64_t *bits, size_t offset, const int32_t *relative) {
    bool all = true;
    for (int n = 0; n < WORDS; n++) {
        all = all && byte_bits_all(bits, offset + (size_t)(int64_t)relative[n], 4);
    }
    return all;
}
#endif
