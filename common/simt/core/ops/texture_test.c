/* Texture fetches and surface accesses: values against plain C, and mistakes found in words. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/simt/core/launch/launch_testing.h"
#include "common/simt/texture/texture.h"
#include "common/testing/testing.h"

enum { PLACES = 64, WIDTH = 5, HEIGHT = 4, DEPTH = 3, MOST_WORDS = 4, ONE = 256 };

/* A module and its objects. */
struct stage {
    struct launch_testing t;
    struct simt_textures *textures;
};

static bool stage_open(struct stage *s) {
    s->textures = simt_textures_create();
    return launch_testing_open(&s->t, TEXTURES_PTX) && s->textures != NULL;
}

static void stage_close(struct stage *s) {
    simt_textures_free(s->textures);
    launch_testing_close(&s->t);
}

#define TEXTURE_TEST(name) \
    FIXTURE_TEST(texture, name, struct stage, s, stage_open(s), stage_close(s))

/* An image of floats in new memory. @param texels NULL: never written */
static struct simt_image image_of(struct stage *s, uint32_t width, uint32_t height, uint32_t depth,
                                  const void *texels) {
    uint32_t rows = height > 0 ? height : 1, planes = depth > 0 ? depth : 1;
    struct simt_image image = {.width = width,
                               .height = rows,
                               .depth = planes,
                               .dimensions = (uint8_t)(depth > 0    ? 3
                                                       : height > 0 ? 2
                                                                    : 1),
                               .pitch = width * sizeof(float),
                               .slice = (size_t)width * rows * sizeof(float),
                               .bits = 32,
                               .channels = 1,
                               .kind = SIMT_CHANNEL_FLOAT,
                               .array = true};
    size_t bytes = image.slice * planes;
    EXPECT_OK(simt_memory_alloc(s->t.memory, bytes, 512, "cudaMallocArray", &image.address));
    if (texels != NULL) {
        memcpy(simt_memory_host(s->t.memory, image.address), texels, bytes);
        simt_memory_mark(s->t.memory, image.address, bytes);
    }
    return image;
}

static uint64_t add(struct stage *s, const struct simt_texture *texture) {
    uint64_t handle = 0;
    EXPECT_OK(simt_textures_add(s->textures, texture, &handle));
    return handle;
}

/* Parameters of most kernels. */
struct parameters {
    uint64_t out, a, b;
};

static bool run(struct stage *s, const char *kernel, uint32_t x, uint32_t y, int host_threads,
                const struct parameters *parameters) {
    return launch_testing_run_clean(&s->t, LAUNCH(.kernel = kernel, .threads = {x, y},
                                                  .parameters = parameters, .textures = s->textures,
                                                  .host_threads = host_threads));
}

/*
 * The reference: whole numbers only. A place on an axis is a number of 1/256 of a texel, texels
 * are whole numbers, and so is 256 times the result.
 */

/* The place of the left or only texel of a fetch on an axis, in 1/256. */
static int64_t reference_place(enum simt_address_mode mode, bool normalised, bool linear, float at,
                               int64_t extent) {
    int64_t one = 1 << 21, half = linear ? ONE / 2 : 0, place;
    if (!normalised) { /* tests use multiples of 1/1024 */
        int64_t fine = (int64_t)lrintf(at * 1024);
        place = (linear ? fine + 2 : fine) >> 2;
    } else {
        int64_t turn = (int64_t)floor((double)at * (double)one);
        int64_t period = mode == SIMT_ADDRESS_MIRROR ? 2 * one : one;
        if (mode == SIMT_ADDRESS_WRAP || mode == SIMT_ADDRESS_MIRROR) {
            turn = ((turn % period) + period) % period;
            turn = turn > one ? 2 * one - turn : turn;
        }
        place = (turn * extent * ONE + (linear ? one / 2 : 0)) >> 21;
    }
    return place - half;
}

/* The texel of a number on an axis; -1: the border. */
static int64_t reference_texel(enum simt_address_mode mode, bool normalised, int64_t n,
                               int64_t extent) {
    if (mode == SIMT_ADDRESS_BORDER && (n < 0 || n >= extent)) {
        return -1;
    }
    if (mode == SIMT_ADDRESS_WRAP && normalised) {
        return ((n % extent) + extent) % extent;
    }
    return n < 0 ? 0 : n >= extent ? extent - 1 : n;
}

/* One axis of a fetch: two texels, and the weight of the second in 1/256. */
struct reference_axis {
    int64_t texel[2], weight;
};

static struct reference_axis reference_axis(const struct simt_texture *t, int axis, float at,
                                            int64_t extent) {
    enum simt_address_mode mode = (enum simt_address_mode)t->modes[axis];
    int64_t place = reference_place(mode, t->normalised, t->linear, at, extent);
    bool leaves = mode == SIMT_ADDRESS_BORDER || (mode == SIMT_ADDRESS_WRAP && t->normalised);
    if (t->linear && !leaves) {
        int64_t last = (extent - 1) * ONE;
        place = place < 0 ? 0 : place > last ? last : place;
    }
    int64_t first = place >> 8;
    return (struct reference_axis){{reference_texel(mode, t->normalised, first, extent),
                                    reference_texel(mode, t->normalised, first + 1, extent)},
                                   t->linear ? place & 255 : 0};
}

/* What the second of two parts of a weight is, rounded. */
static int64_t part(int64_t whole, int64_t weight) {
    return (whole * weight + 128) / 256;
}

/* The weight of a corner: bits say on which axes it is the second texel. Along z, then x, then y;
 * on the side where x is the first, y's first part is the rounded one. */
static int64_t reference_weight(const struct reference_axis axes[3], uint32_t corner) {
    int64_t plane = (corner & 4) != 0 ? axes[2].weight : 256 - axes[2].weight;
    int64_t right = part(plane, axes[0].weight);
    if ((corner & 1) != 0) {
        int64_t lower = part(right, axes[1].weight);
        return (corner & 2) != 0 ? lower : right - lower;
    }
    int64_t left = plane - right, upper = part(left, 256 - axes[1].weight);
    return (corner & 2) != 0 ? left - upper : upper;
}

static float reference_fetch(const struct simt_texture *t, const float *texels, const float at[3]) {
    const struct simt_image *image = &t->image;
    struct reference_axis axes[3] = {
        reference_axis(t, 0, at[0], image->width),
        image->dimensions > 1 ? reference_axis(t, 1, at[1], image->height)
                              : (struct reference_axis){.weight = 0},
        image->dimensions > 2 ? reference_axis(t, 2, at[2], image->depth)
                              : (struct reference_axis){.weight = 0}};
    int64_t sum = 0;
    for (uint32_t corner = 0; corner < 8; corner++) {
        int64_t x = axes[0].texel[corner & 1], y = axes[1].texel[corner >> 1 & 1];
        int64_t z = axes[2].texel[corner >> 2];
        bool border = x < 0 || y < 0 || z < 0;
        int64_t at_texel = border ? 0 : (z * image->height + y) * image->width + x;
        int64_t texel = (int64_t)(border ? t->border[0] : texels[at_texel]);
        sum += reference_weight(axes, corner) * texel;
    }
    return (float)sum / ONE;
}

/* Fetches at random places, and compares. */
static void compare_fetches(struct stage *s, struct simt_texture *t, const float *texels,
                            const char *kernel, struct rng *rng) {
    float at[PLACES][4] = {{0}};
    for (int n = 0; n < PLACES; n++) {
        for (int axis = 0; axis < 3; axis++) { /* multiples of 1/1024, from -8 to 16 */
            float place = (float)((int)rng_below(rng, 24 * 1024) - 8 * 1024) / 1024;
            at[n][axis] = t->normalised ? place / 5 : place;
        }
    }
    const struct parameters p = {launch_testing_upload(&s->t, NULL, sizeof at),
                                 launch_testing_upload(&s->t, at, sizeof at), add(s, t)};
    if (!run(s, kernel, PLACES, 1, 1, &p)) {
        return;
    }
    const float(*got)[4] = launch_testing_result(&s->t, p.out);
    for (int n = 0; n < PLACES && !test_has_failed(); n++) {
        float want = reference_fetch(t, texels, at[n]);
        if (got[n][0] != want || got[n][1] != 0 || got[n][3] != 0) {
            TEST_FAIL("%s %s%s mode %d at (%g, %g, %g): %g, not %g", kernel,
                      t->linear ? "linear" : "point", t->normalised ? " normalised" : "",
                      t->modes[0], (double)at[n][0], (double)at[n][1], (double)at[n][2],
                      (double)got[n][0], (double)want);
        }
    }
}

/* All address modes, filters and kinds of coordinates. */
static void compare_all(struct stage *s, int dimensions) {
    static const char *const kernels[] = {"", "fetch_1d", "fetch_2d", "fetch_3d"};
    float texels[WIDTH * HEIGHT * DEPTH];
    struct rng rng = rng_create((uint64_t)dimensions);
    for (size_t n = 0; n < sizeof texels / sizeof *texels; n++) {
        texels[n] = (float)((int)rng_below(&rng, 201) - 100);
    }
    struct simt_texture t = {.border = {7}};
    t.image = image_of(s, WIDTH, dimensions > 1 ? HEIGHT : 0, dimensions > 2 ? DEPTH : 0, texels);
    for (uint32_t form = 0; form < 16; form++) {
        for (int axis = 0; axis < dimensions; axis++) {
            t.modes[axis] = (uint8_t)((form + (uint32_t)axis) % 4);
        }
        t.linear = (form & 4) != 0;
        t.normalised = form >= 8;
        compare_fetches(s, &t, texels, kernels[dimensions], &rng);
    }
}

TEXTURE_TEST(fetches_of_one_dimension) {
    compare_all(s, 1);
}

TEXTURE_TEST(fetches_of_two_dimensions) {
    compare_all(s, 2);
}

TEXTURE_TEST(fetches_of_three_dimensions) {
    compare_all(s, 3);
}

/* A row of bytes: 0, 51, 102, 153, 204, 255 are 0, 0.2 ... 1. */
TEXTURE_TEST(bytes_are_filtered_with_16_bits) {
    static const unsigned char bytes[8] = {0, 51, 102, 153, 204, 255, 255, 255};
    float at[PLACES][4] = {{0}};
    float words[2];
    memcpy(words, bytes, sizeof words);
    struct simt_texture t = {.modes = {SIMT_ADDRESS_CLAMP}, .linear = true, .as_float = true};
    t.image = image_of(s, 2, 0, 0, words);
    t.image.width = 8;
    t.image.bits = 8;
    t.image.kind = SIMT_CHANNEL_UNSIGNED;
    for (int n = 0; n < PLACES; n++) {
        at[n][0] = (float)n / 8;
    }
    const struct parameters p = {launch_testing_upload(&s->t, NULL, sizeof at),
                                 launch_testing_upload(&s->t, at, sizeof at), add(s, &t)};
    ASSERT_TRUE(run(s, "fetch_1d", PLACES, 1, 1, &p));
    const float(*got)[4] = launch_testing_result(&s->t, p.out);
    for (int n = 4; n < PLACES - 4; n++) { /* eighths: weights are multiples of 1/8 */
        int left = (n - 4) / 8, eighths = (n - 4) % 8;
        int sum = (8 - eighths) * bytes[left] * 257 + eighths * bytes[left + 1] * 257;
        EXPECT_NEAR((float)((sum + 4) / 8) / 65535, got[n][0], 0);
    }
}

TEXTURE_TEST(gathers_take_four_texels_counterclockwise) {
    static const float texels[4] = {1, 2, 3, 4}; /* two rows of two */
    const float at[1][4] = {{1, 1}};
    struct simt_texture t = {.modes = {SIMT_ADDRESS_CLAMP, SIMT_ADDRESS_CLAMP}};
    t.image = image_of(s, 2, 2, 0, texels);
    const struct parameters p = {launch_testing_upload(&s->t, NULL, sizeof at),
                                 launch_testing_upload(&s->t, at, sizeof at), add(s, &t)};
    ASSERT_TRUE(run(s, "gather", 1, 1, 1, &p));
    const float *got = launch_testing_result(&s->t, p.out);
    const float want[4] = {3, 4, 2, 1};
    EXPECT_INT_EQ(0, memcmp(got, want, sizeof want));
}

TEXTURE_TEST(layers_beyond_the_last_are_the_last) {
    static const float texels[3] = {10, 20, 30}; /* one texel a layer */
    const float at[5][4] = {{0, 0, 0}, {0, 0, 1}, {0, 0, 2}, {0, 0, 9}, {0, 0, -1}};
    struct simt_texture t = {.modes = {SIMT_ADDRESS_CLAMP, SIMT_ADDRESS_CLAMP}};
    t.image = image_of(s, 1, 1, 3, texels);
    t.image.dimensions = 2;
    t.image.depth = 1;
    t.image.layers = 3;
    const struct parameters p = {launch_testing_upload(&s->t, NULL, sizeof at),
                                 launch_testing_upload(&s->t, at, sizeof at), add(s, &t)};
    ASSERT_TRUE(run(s, "fetch_layer", 5, 1, 1, &p));
    const float(*got)[4] = launch_testing_result(&s->t, p.out);
    const float want[5] = {10, 20, 30, 30, 30};
    for (int n = 0; n < 5; n++) {
        EXPECT_NEAR(want[n], got[n][0], 0);
    }
}

TEXTURE_TEST(indices_beyond_linear_memory_give_zeros) {
    static const float values[4] = {1, 2, 4, 8};
    struct simt_texture t = {.image = image_of(s, 4, 0, 0, values)};
    t.image.array = false;
    const struct parameters p = {launch_testing_upload(&s->t, NULL, 12 * sizeof(float)), add(s, &t),
                                 0};
    ASSERT_TRUE(run(s, "fetch_index", 12, 1, 1, &p));
    const float *got = launch_testing_result(&s->t, p.out);
    for (int n = 0; n < 12; n++) {
        EXPECT_NEAR(n >= 4 && n < 8 ? values[n - 4] : 0, got[n], 0);
    }
}

TEXTURE_TEST(lanes_may_use_two_textures) {
    static const float a[4] = {1, 2, 3, 4}, b[4] = {10, 20, 30, 40};
    struct simt_texture one = {.image = image_of(s, 4, 1, 0, a)};
    struct simt_texture two = {.image = image_of(s, 4, 1, 0, b)};
    one.image.dimensions = two.image.dimensions = 2;
    const struct parameters p = {launch_testing_upload(&s->t, NULL, 4 * sizeof(float)),
                                 add(s, &one), add(s, &two)};
    ASSERT_TRUE(run(s, "fetch_two", 4, 1, 1, &p));
    const float want[4] = {10, 2, 30, 4};
    EXPECT_INT_EQ(0, memcmp(launch_testing_result(&s->t, p.out), want, sizeof want));
    /* The texels of a fetch are a request each: of two groups of lanes here, one sector each. */
    EXPECT_INT_EQ(2, s->t.counters.global_load_requests);
    EXPECT_INT_EQ(2, s->t.counters.global_load_sectors);
}

TEXTURE_TEST(surfaces_are_copied_by_any_number_of_threads) {
    float texels[WIDTH * HEIGHT];
    for (int n = 0; n < WIDTH * HEIGHT; n++) {
        texels[n] = (float)n + 1;
    }
    for (int host_threads = 1; host_threads <= 4; host_threads *= 2) {
        struct simt_texture from = {.surface = true,
                                    .image = image_of(s, WIDTH, HEIGHT, 0, texels)};
        struct simt_texture to = {.surface = true, .image = image_of(s, WIDTH, HEIGHT, 0, NULL)};
        const struct parameters p = {add(s, &to), add(s, &from), 0};
        ASSERT_TRUE(run(s, "copy_surface", WIDTH, HEIGHT, host_threads, &p));
        EXPECT_INT_EQ(
            0, memcmp(simt_memory_host(s->t.memory, to.image.address), texels, sizeof texels));
    }
}

TEXTURE_TEST(boundary_modes_read_zeros_or_the_border) {
    static const float texels[4] = {1, 2, 3, 4}; /* two rows of two */
    struct simt_texture t = {.surface = true, .image = image_of(s, 2, 2, 0, texels)};
    const struct parameters p = {launch_testing_upload(&s->t, NULL, 36 * sizeof(float)), add(s, &t),
                                 0};
    ASSERT_TRUE(run(s, "beyond_on_purpose", 6, 6, 1, &p));
    const float *got = launch_testing_result(&s->t, p.out);
    for (int n = 0; n < 36; n++) {
        int x = n % 6 - 2, y = n / 6 - 2;
        bool inside = x >= 0 && x < 2 && y >= 0 && y < 2;
        float near = texels[(y > 0 ? 2 : 0) + (x > 0 ? 1 : 0)];
        EXPECT_NEAR(inside ? 1001 * near : near, got[n], 0);
    }
    EXPECT_INT_EQ(0, memcmp(simt_memory_host(s->t.memory, t.image.address), texels, sizeof texels));
}

TEXTURE_TEST(smaller_pieces_signs_and_sizes_pass) {
    static const unsigned char bytes[16] = {1, 2,  3,  4,  250, 6,  7,  8,
                                            9, 10, 11, 12, 13,  14, 15, 16};
    struct simt_texture t = {.image = image_of(s, 4, 1, 0, bytes)};
    t.image.dimensions = 2;
    t.image.height = 4;
    t.image.pitch = 4;
    t.image.bits = 8;
    t.image.kind = SIMT_CHANNEL_SIGNED;
    struct simt_texture surface = {.surface = true, .image = t.image};
    surface.image.bits = 32;
    surface.image.width = 1;
    const struct parameters p = {launch_testing_upload(&s->t, NULL, 64), add(s, &t), 0};
    const struct parameters q = {p.out, add(s, &surface), 0};
    const struct parameters r = {p.out, p.a, q.a};
    const uint32_t *got = launch_testing_result(&s->t, p.out);
    ASSERT_TRUE(run(s, "signs_do_not_matter", 16, 1, 1, &p));
    EXPECT_INT_EQ(250, got[4]);
    ASSERT_TRUE(run(s, "bytes_of_elements", 4, 1, 1, &q));
    EXPECT_INT_EQ(250, got[0]);
    EXPECT_INT_EQ(8, got[3]);
    ASSERT_TRUE(run(s, "sizes", 1, 1, 1, &r));
    EXPECT_INT_EQ(4, got[0]);
    EXPECT_INT_EQ(4, got[1]);
}

/* Mistakes. */

enum object {
    TEXTURE_2D, /* 4 x 4 floats */
    TEXTURE_1D,
    TEXTURE_BYTES,
    TEXTURE_MEMORY,
    TEXTURE_SHORT, /* of memory that ends before */
    TEXTURE_UNWRITTEN,
    TEXTURE_DESTROYED,
    TEXTURE_FREED,
    SURFACE_2D,
    SURFACE_1D,
    SURFACE_3D,
    SURFACE_LAYERED,
    SURFACE_DESTROYED,
    NO_OBJECT
};

struct mistake {
    const char *kernel;
    enum object object;
    uint32_t grid, thread; /* the one that is told of */
    enum simt_fault_kind kind;
    const char *words[MOST_WORDS];
};

/* clang-format off */
static const struct mistake mistakes[] = {
    {"floats_of_integers", TEXTURE_BYTES, 1, 0, SIMT_FAULT_TEXTURE,
     {"fetches floats from texture object #1 (4x4; 1 channel, 8-bit unsigned), which gives integers"}},
    {"integers_of_floats", TEXTURE_2D, 1, 0, SIMT_FAULT_TEXTURE,
     {"fetches integers from texture object #1 (4x4; 1 channel, 32-bit float)", "tex2D<type>()"}},
    {"one_dimension_of_two", TEXTURE_2D, 1, 0, SIMT_FAULT_TEXTURE,
     {"fetches with tex1D() from texture object #1", "which is for tex2D()"}},
    {"index_into_an_array", TEXTURE_1D, 1, 0, SIMT_FAULT_TEXTURE,
     {"fetches with tex1Dfetch() from texture object #1 (4;", "which is for tex1D()"}},
    {"coordinates_of_memory", TEXTURE_MEMORY, 1, 0, SIMT_FAULT_TEXTURE,
     {"fetches with tex1D() from", "which is for tex1Dfetch()"}},
    {"layers_of_none", TEXTURE_2D, 1, 0, SIMT_FAULT_TEXTURE, {"with tex2DLayered()", "for tex2D()"}},
    {"texture_that_is_none", NO_OBJECT, 1, 0, SIMT_FAULT_TEXTURE,
     {"uses 0x5 as a texture object, which cudaCreateTextureObject() has not made"}},
    {"texture_of_a_surface", SURFACE_2D, 1, 0, SIMT_FAULT_TEXTURE,
     {"uses surface object #1 (4x4; 1 channel, 32-bit float) as a texture object"}},
    {"texture_destroyed", TEXTURE_DESTROYED, 1, 0, SIMT_FAULT_FREED,
     {"uses texture object #1", "which was destroyed", "cudaDestroyTextureObject()"}},
    {"array_freed", TEXTURE_FREED, 1, 0, SIMT_FAULT_FREED,
     {"reads 4 bytes", "(cudaMallocArray, 64 bytes), which was freed"}},
    {"array_never_written", TEXTURE_UNWRITTEN, 1, 0, SIMT_FAULT_UNINITIALISED,
     {"cudaMallocArray, 64 bytes"}},
    {"memory_too_short", TEXTURE_SHORT, 1, 16, SIMT_FAULT_OUT_OF_BOUNDS,
     {"reads 4 bytes", "just past the end of", "cudaMallocArray, 64 bytes"}},
    {"surface_of_a_texture", TEXTURE_2D, 1, 0, SIMT_FAULT_TEXTURE,
     {"uses texture object #1", "as a surface object"}},
    {"surface_destroyed", SURFACE_DESTROYED, 1, 0, SIMT_FAULT_FREED, {"which was destroyed"}},
    {"elements_for_bytes", SURFACE_2D, 1, 1, SIMT_FAULT_MISALIGNED,
     {"reads 4 bytes at byte 1 of a row of surface object #1", "not a multiple of 4",
      "x * sizeof(element)"}},
    {"row_one_past", SURFACE_2D, 1, 4, SIMT_FAULT_OUT_OF_BOUNDS,
     {"reads 4 bytes at byte 16 of a row, row 0 of surface object #1 (4x4;", "a row has 16 bytes",
      "x * sizeof(element)"}},
    {"rows_one_past", SURFACE_2D, 1, 4, SIMT_FAULT_OUT_OF_BOUNDS,
     {"writes 4 bytes at byte 0 of a row, row 4 of surface object #1"}},
    {"planes_one_past", SURFACE_3D, 1, 2, SIMT_FAULT_OUT_OF_BOUNDS,
     {"row 0, plane 2 of surface object #1 (4x2x2;"}},
    {"layers_one_past", SURFACE_LAYERED, 1, 2, SIMT_FAULT_OUT_OF_BOUNDS,
     {"row 0, layer 2 of surface object #1 (4x2, 2 layers;"}},
    {"before_the_row", SURFACE_1D, 1, 0, SIMT_FAULT_OUT_OF_BOUNDS,
     {"writes 4 bytes at byte -4 of a row of surface object #1 (4;"}},
    {"four_elements_at_once", SURFACE_2D, 1, 0, SIMT_FAULT_TEXTURE,
     {"reads 16 bytes at once of surface object #1", "whose elements have 4 bytes"}},
    {"surface_of_two_dimensions", SURFACE_2D, 1, 0, SIMT_FAULT_TEXTURE,
     {"reads at 1D coordinates of surface object #1 (4x4;"}},
    {"writes_what_nobody_wrote", SURFACE_2D, 1, 0, SIMT_FAULT_UNINITIALISED,
     {"of shared memory that no thread of the block has written", "stores the value"}},
    {"two_blocks_write", SURFACE_2D, 2, 0, SIMT_FAULT_GLOBAL_RACE, {"cudaMallocArray"}},
};
/* clang-format on */

/* An image with the shape that a mistake needs. */
static struct simt_image image_for(struct stage *s, enum object object) {
    static const float texels[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    bool flat = object == TEXTURE_1D || object == SURFACE_1D;
    bool deep = object == SURFACE_3D || object == SURFACE_LAYERED;
    struct simt_image image = image_of(s, 4,
                                       flat   ? 0
                                       : deep ? 2
                                              : 4,
                                       deep ? 2 : 0, object == TEXTURE_UNWRITTEN ? NULL : texels);
    if (object == TEXTURE_BYTES) {
        image.bits = 8;
        image.kind = SIMT_CHANNEL_UNSIGNED;
    } else if (object == TEXTURE_MEMORY || object == TEXTURE_SHORT) {
        image.array = false;
        image.dimensions = 1;
        image.width = object == TEXTURE_SHORT ? 32 : 16;
    } else if (object == SURFACE_LAYERED) {
        image.dimensions = 2;
        image.depth = 1;
        image.layers = 2;
    }
    return image;
}

static uint64_t object_for(struct stage *s, enum object object) {
    if (object == NO_OBJECT) {
        return 5;
    }
    struct simt_texture t = {.surface = object >= SURFACE_2D, .image = image_for(s, object)};
    uint64_t handle = add(s, &t);
    simt_textures_find(s->textures, handle)->destroyed =
        object == TEXTURE_DESTROYED || object == SURFACE_DESTROYED;
    if (object == TEXTURE_FREED) {
        EXPECT_OK(simt_memory_release(s->t.memory, t.image.address));
    }
    return handle;
}

/* The number of the line that carries a mark. */
static uint32_t line_of(const char *source, const char *kernel) {
    char mark[96];
    snprintf(mark, sizeof mark, "// FAULT: %s\n", kernel);
    const char *at = strstr(source, mark);
    uint32_t line = at != NULL ? 1 : 0;
    for (const char *c = source; at != NULL && c < at; c++) {
        line += *c == '\n';
    }
    return line;
}

static void judge(const struct mistake *m, const struct simt_fault *fault, const char *message,
                  const char *source) {
    if (fault->kind != m->kind || fault->line != line_of(source, m->kernel) ||
        fault->thread[0] != m->thread) {
        TEST_FAIL("%s: kind %d, line %u, thread %u\n%s", m->kernel, (int)fault->kind, fault->line,
                  fault->thread[0], message);
    }
    for (size_t n = 0; n < MOST_WORDS && m->words[n] != NULL; n++) {
        if (strstr(message, m->words[n]) == NULL) {
            TEST_FAIL("%s does not say \"%s\":\n%s", m->kernel, m->words[n], message);
        }
    }
}

static void make_mistake(const struct mistake *m, int host_threads, const char *source) {
    struct stage s;
    if (stage_open(&s)) {
        static const float zeros[32];
        const struct parameters p = {launch_testing_upload(&s.t, zeros, sizeof zeros),
                                     object_for(&s, m->object), 0};
        launch_testing_run(&s.t, LAUNCH(.kernel = m->kernel, .grid = {m->grid}, .threads = {32},
                                        .parameters = &p, .textures = s.textures,
                                        .host_threads = host_threads));
        char *message = launch_testing_message(&s.t.fault);
        judge(m, &s.t.fault, message, source);
        free(message);
    }
    stage_close(&s);
}

C_TEST(texture, mistakes_are_found_at_their_lines) {
    char *source = NULL;
    size_t size = 0;
    struct error error = {0};
    ASSERT_OK(file_read(TEXTURES_CU, (size_t)1 << 20, &source, &size, &error));
    for (size_t n = 0; n < sizeof mistakes / sizeof *mistakes; n++) {
        for (int host_threads = 1; host_threads <= 4; host_threads *= 2) {
            make_mistake(&mistakes[n], host_threads, source);
        }
    }
    free(source);
}
