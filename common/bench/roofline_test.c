#include "common/bench/roofline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/testing/testing.h"

static const struct roofline h200 = {.flops_per_s = 66.9e12, .bytes_per_s = 4.8e12};

C_TEST(roofline, the_slower_roof_counts) {
    /* 66.9e12 operations take a second of arithmetic, 4.8e12 bytes one of memory. */
    EXPECT_NEAR(1000.0, roofline_least_ms(&h200, 66.9e12, 1.0), 1e-9);
    EXPECT_NEAR(2000.0, roofline_least_ms(&h200, 66.9e12, 9.6e12), 1e-9);
    EXPECT_NEAR(0.5, roofline_share(&h200, 66.9e12, 1.0, 2000.0), 1e-12);
    EXPECT_NEAR(0.25, roofline_share(&h200, 1.0, 4.8e12, 4000.0), 1e-12);
}

static char *draw(const struct roofline_plot *plot, const char *name) {
    char path[512];
    char *text = NULL;
    size_t size = 0;
    struct error error = {0};
    EXPECT_OK(roofline_plot(plot, test_temporary_path(name, path, sizeof path), &error));
    EXPECT_OK(file_read(path, 1 << 20, &text, &size, &error));
    return text;
}

static void expect_text(const char *text, const char *part) {
    if (strstr(text, part) == NULL) {
        TEST_FAIL("'%s' is not in the picture", part);
    }
}

static int occurrences(const char *text, const char *part) {
    int count = 0;
    for (; (text = strstr(text, part)) != NULL; text++) {
        count++;
    }
    return count;
}

C_TEST(roofline, the_picture_names_its_points) {
    const struct roofline_point points[] = {
        {"v1 <naive> & \"slow\"", 1.37e11, 2.0e8, 60.0},
        {"v2_tile", 1.37e11, 2.0e8, 2.7},
        {"v3\tfaster", 1.37e11, 2.0e8, 2.69},
        {"copy", 1.0e6, 8.0e8, 0.2},
    };
    const struct roofline_plot plot = {.title = "SGEMM & more",
                                       .subtitle = "modelled for NVIDIA H200",
                                       .roofs = h200,
                                       .points = points,
                                       .count = 4};
    char *text = draw(&plot, "plot.svg");
    ASSERT_TRUE(text != NULL);
    expect_text(text, "<svg xmlns=\"http://www.w3.org/2000/svg\"");
    expect_text(text, "SGEMM &amp; more</text>");
    expect_text(text, "modelled for NVIDIA H200</text>");
    expect_text(text, "v1 &lt;naive&gt; &amp; &quot;slow&quot;");
    expect_text(text, "v3 faster: 50.9 TFLOP/s</text>");
    expect_text(text, "66.9 TFLOP/s fp32");
    expect_text(text, "4800 GB/s");
    expect_text(text, "prefers-color-scheme: dark");
    EXPECT_INT_EQ(4, occurrences(text, "<circle"));
    EXPECT_TRUE(strstr(text, "nan") == NULL && strstr(text, "inf") == NULL);
    EXPECT_STR_EQ("</svg>\n", text + strlen(text) - 7);
    free(text);
}

/* Label heights of a picture whose points all lie at one place. */
C_TEST(roofline, labels_do_not_overlap) {
    enum { COUNT = 20 };
    struct roofline_point points[COUNT];
    for (int i = 0; i < COUNT; i++) {
        points[i] = (struct roofline_point){"same", 1e12, 1e10, 20.0 + 1e-3 * i};
    }
    const struct roofline_plot plot = {
        .title = "t", .subtitle = "s", .roofs = h200, .points = points, .count = COUNT};
    char *text = draw(&plot, "labels.svg");
    ASSERT_TRUE(text != NULL);
    double last = 0.0;
    int labels = 0;
    for (const char *at = text; (at = strstr(at, ">same: ")) != NULL; at++) {
        const char *y = at;
        while (strncmp(y, " y=\"", 4) != 0) {
            y--;
        }
        double height = atof(y + 4);
        EXPECT_TRUE(height >= last + 14.9 && height < 470.0);
        last = height;
        labels++;
    }
    EXPECT_INT_EQ(COUNT, labels);
    free(text);
}

C_TEST(roofline, without_points_the_roofs_remain) {
    const struct roofline_plot plot = {.title = "t", .subtitle = "s", .roofs = h200};
    char *text = draw(&plot, "empty.svg");
    ASSERT_TRUE(text != NULL);
    EXPECT_INT_EQ(1, occurrences(text, "<polyline"));
    free(text);
}

C_TEST(roofline, refuses_values_that_have_no_logarithm) {
    char path[512];
    struct error error = {0};
    struct roofline_point point = {"v1", 1.0, 1.0, 0.0};
    struct roofline_plot plot = {
        .title = "t", .subtitle = "s", .roofs = h200, .points = &point, .count = 1};
    test_temporary_path("refused.svg", path, sizeof path);
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, roofline_plot(&plot, path, &error));
    EXPECT_STR_EQ("point 'v1' of a roofline: 1 operations, 1 bytes, 0 ms", error.message);
    point.ms = NAN;
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, roofline_plot(&plot, path, &error));
    point.ms = 1.0;
    plot.roofs.bytes_per_s = 0.0;
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, roofline_plot(&plot, path, &error));
    EXPECT_TRUE(fopen(path, "r") == NULL);
    plot.roofs = h200;
    EXPECT_STATUS(STATUS_NOT_FOUND, roofline_plot(&plot, "/absent/folder/x.svg", &error));
}
