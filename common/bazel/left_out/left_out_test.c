#include "common/bazel/left_out/left_out.h"

#include "common/simt/fatbin/fatbin_image.h"
#include "common/testing/testing.h"

static const char plain[] = ".version 9.0\n.target sm_75\n.visible .entry k()\n{ ret; }\n";
static const char same[] = ".version 9.0\n.target sm_80\n.visible .entry k()\n{ ret; }\n";
static const char other[] = ".version 9.0\n.target sm_90a\n.visible .entry k()\n{ exit; }\n";
static const char longer[] = ".version 9.0\n.target sm_80\n.visible .entry k()\n{ ret; }\n//\n";
static const char asks[] = ".version 9.0\n.target sm_80\n.visible .entry gpu_code_probe()\n{}\n";

/* What is said of a file with PTX for 7.5, 8.0 and 9.0; "" where nothing is missed. */
static const char *said_of(const char *capabilities, const char *middle, const char *newest,
                           struct error *error) {
    enum { PTX = 1 };
    struct fatbin_image image = {.size = 0};
    fatbin_image_add(&image, PTX, 75, 0, plain);
    fatbin_image_add(&image, PTX, 80, 0, middle);
    fatbin_image_add(&image, PTX, 90, 0, newest);
    *error = (struct error){0};
    enum status status = left_out_check(capabilities, image.bytes, image.size, error);
    return status == STATUS_OK ? "" : error_text(error, status);
}

C_TEST(left_out, the_same_ptx_is_not_missed) {
    struct error error;
    EXPECT_STR_EQ("", said_of("75", same, same, &error));
    EXPECT_STR_EQ("", said_of("75 90", same, other, &error));
    EXPECT_STR_EQ("", said_of("75 80", other, other, &error));
}

C_TEST(left_out, ptx_of_its_own_is_missed) {
    struct error error;
    EXPECT_STR_EQ("PTX for 90 is left out, and is not that for 75: '{ exit; }'",
                  said_of("75", same, other, &error));
    EXPECT_STR_EQ("PTX for 80 is left out, and is not that for 75: '{ exit; }'",
                  said_of("75 90", other, other, &error));
    EXPECT_STR_EQ("PTX for 90 is left out, and is not that for 80: '{ exit; }'",
                  said_of("75 80", same, other, &error));
    EXPECT_STR_EQ("PTX for 80 is left out, and is not that for 75: '//'",
                  said_of("75", longer, same, &error));
}

C_TEST(left_out, who_asks_misses_it) {
    struct error error;
    EXPECT_STR_EQ("PTX for 80 is left out, and host code asks which one runs",
                  said_of("75 90", asks, other, &error));
}

C_TEST(left_out, a_list_leaves_something_out) {
    struct error error;
    EXPECT_STR_EQ("no PTX is left out but older one", said_of("90", same, same, &error));
    EXPECT_STR_EQ("no PTX is left out but older one", said_of("75 80 90", same, same, &error));
}
