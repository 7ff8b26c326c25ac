/* Sums by name, and their table. */
#include "common/bench/device/kernel_totals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/testing/testing.h"

/* The printed table; the caller frees it. */
static char *printed(struct kernel_totals *totals, size_t most) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (stream != NULL) {
        kernel_totals_print(totals, most, stream);
        fclose(stream);
    }
    return text;
}

static struct kernel_totals example(void) {
    struct kernel_totals totals = {0};
    kernel_totals_add(&totals, "tile<128, true>", 1.0);
    kernel_totals_add(&totals, "fill", 0.5);
    kernel_totals_add(&totals, "tile<128, false>", 4.0);
    kernel_totals_add(&totals, "tile<128, true>", 2.5);
    return totals;
}

C_TEST(kernel_totals, adds_up_by_the_whole_name) {
    struct kernel_totals totals = example();
    ASSERT_TRUE(totals.count == 3 && totals.launches == 4 && totals.status == STATUS_OK);
    EXPECT_TRUE(totals.ms == 8.0);
    EXPECT_STR_EQ("tile<128, true>", totals.rows[0].name);
    EXPECT_TRUE(totals.rows[0].launches == 2 && totals.rows[0].ms == 3.5);
    kernel_totals_free(&totals);
    EXPECT_TRUE(totals.count == 0 && totals.rows == NULL);
    kernel_totals_free(&totals);
}

C_TEST(kernel_totals, prints_what_takes_longest_first) {
    struct kernel_totals totals = example();
    char *text = printed(&totals, 10);
    EXPECT_STR_EQ("   launches          ms    share  kernel\n"
                  "          1      4.0000    50.0%  tile<128, false>\n"
                  "          2      3.5000    43.8%  tile<128, true>\n"
                  "          1      0.5000     6.2%  fill\n",
                  text);
    free(text);
    kernel_totals_free(&totals);
}

C_TEST(kernel_totals, sums_up_what_is_not_shown) {
    struct kernel_totals totals = example();
    char *text = printed(&totals, 1);
    EXPECT_STR_EQ("   launches          ms    share  kernel\n"
                  "          1      4.0000    50.0%  tile<128, false>\n"
                  "          3      4.0000    50.0%  all others\n",
                  text);
    free(text);
    kernel_totals_free(&totals);
}

C_TEST(kernel_totals, of_nothing_is_a_head_alone) {
    struct kernel_totals totals = {0};
    char *text = printed(&totals, 3);
    EXPECT_STR_EQ("   launches          ms    share  kernel\n", text);
    free(text);
    kernel_totals_free(&totals);
}
