#include "common/base/hash.h"

#include "common/testing/testing.h"

enum { SIZE = 27 };

C_TEST(checksum, notices_each_bit_and_the_length) {
    unsigned char bytes[SIZE + 1];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)(i * 37);
    }
    for (size_t size = 0; size <= SIZE; size++) {
        uint64_t sum = checksum_bytes(bytes, size);
        for (size_t bit = 0; bit < 8 * size; bit++) {
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
            EXPECT_TRUE(checksum_bytes(bytes, size) != sum);
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
        EXPECT_TRUE(checksum_bytes(bytes, size) == sum);
    }
    const unsigned char zeros[SIZE] = {0};
    EXPECT_TRUE(checksum_bytes(zeros, 8) != checksum_bytes(zeros, 9));
}

C_TEST(checksum, is_the_same_at_any_address) {
    unsigned char bytes[SIZE + 8];
    const char text[] = "twenty-six letters, or so..";
    uint64_t want = checksum_bytes(text, SIZE);
    for (size_t offset = 0; offset < 8; offset++) {
        memcpy(bytes + offset, text, SIZE);
        EXPECT_TRUE(checksum_bytes(bytes + offset, SIZE) == want);
    }
}
