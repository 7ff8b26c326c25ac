/*
 * Draws random programs. What is in each buffer is followed, so that a product reads only elements
 * of its formats, and nothing touches a buffer that copies are on their way to.
 */
#include <stdbool.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/simt/random/hopper/program.h"
#include "common/simt/random/hopper/variants.h"

#define ROW(NAME, COUNT, SUMS, FROM, TAIL, A, B, N, TRANSPOSED_A, TRANSPOSED_B, NEGATED) \
    {A, B, N, FROM, TRANSPOSED_A, TRANSPOSED_B, NEGATED},
enum { SHARED, REGISTERS };
const struct rh_variant rh_variants[RH_VARIANTS] = {RH_LIST(ROW)};

/* What a buffer holds, beside the formats: zeros, which are of any format; or a mixture. */
enum { ANY = -1, MIXTURE = -2 };

enum {
    LEAST_OPERATIONS = 24,
    MORE_OPERATIONS = 24,
    ENDING = 2 * RH_BUFFERS,
    LONGEST = 6, /* operations that are drawn at once */
    PRODUCT_ROWS = 64,
    MOST_KEPT = 2 /* products to whose sums the next ones are added */
};

struct buffer {
    int content; /* a format, ANY or MIXTURE; of a pending one, what it will be */
    int swizzle; /* of boxes in it: CUtensorMapSwizzle; 0: none */
    bool pending;
    uint32_t phases; /* of its mbarrier that are over */
};

struct generator {
    struct rng rng;
    struct rh_program *program;
    struct buffer buffers[RH_BUFFERS];
    uint32_t rounds; /* of RH_ARRIVALS */
    int kept;
    const struct rh_limits *limits;
};

uint32_t rh_bytes(enum rh_format format) {
    static const uint32_t bytes[RH_FORMATS] = {2, 2, 4, 1, 1, 1, 1};
    return bytes[format];
}

/* -2 to 3, or 0 to 5 for the one without a sign. */
uint32_t rh_element(enum rh_format format, uint32_t i) {
    static const uint32_t values[RH_FORMATS][6] = {
        [RH_F16] = {0xc000, 0xbc00, 0, 0x3c00, 0x4000, 0x4200},
        [RH_BF16] = {0xc000, 0xbf80, 0, 0x3f80, 0x4000, 0x4040},
        [RH_F32] = {0xc0000000, 0xbf800000, 0, 0x3f800000, 0x40000000, 0x40400000},
        [RH_E4M3] = {0xc0, 0xb8, 0, 0x38, 0x40, 0x44},
        [RH_E5M2] = {0xc0, 0xbc, 0, 0x3c, 0x40, 0x42},
        [RH_S8] = {0xfe, 0xff, 0, 1, 2, 3},
        [RH_U8] = {0, 1, 2, 3, 4, 5}};
    uint32_t mixed = (i + 1) * 2654435761u;
    return values[format][(mixed >> 16) % 6];
}

static int below(struct generator *g, int bound) {
    return (int)rng_below(&g->rng, (uint64_t)bound);
}

static void emit(struct generator *g, enum rh_kind kind, const int *arguments, int count) {
    struct rh_operation *o = &g->program->operations[g->program->count++];
    *o = (struct rh_operation){.kind = (int32_t)kind};
    for (int i = 0; i < count; i++) {
        o->arguments[i] = arguments[i];
    }
}

#define EMIT(g, kind, ...) \
    emit(g, kind, (const int[]){__VA_ARGS__}, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)))

/* A buffer that nothing is on its way to; where all are waited for, one that is not. */
static int free_buffer(struct generator *g) {
    int first = below(g, RH_BUFFERS);
    for (int i = 0; i < RH_BUFFERS; i++) {
        int b = (first + i) % RH_BUFFERS;
        if (!g->buffers[b].pending) {
            return b;
        }
    }
    struct buffer *buffer = &g->buffers[first];
    EMIT(g, RH_WAIT, first, (int)(buffer->phases++ & 1));
    buffer->pending = false;
    return first;
}

static void wait_for(struct generator *g, int b) {
    struct buffer *buffer = &g->buffers[b];
    if (buffer->pending) {
        EMIT(g, RH_WAIT, b, (int)(buffer->phases++ & 1));
        buffer->pending = false;
    }
}

static void sync_cluster(struct generator *g) {
    EMIT(g, RH_CLUSTER_SYNC, 0);
}

/* `bytes` of a content come into the buffer. */
static void put(struct generator *g, int b, int content, int bytes) {
    struct buffer *buffer = &g->buffers[b];
    bool same = buffer->content == content || buffer->content == ANY || content == ANY;
    if (bytes == RH_BUFFER_BYTES) {
        buffer->content = content;
        buffer->swizzle = 0;
    } else if (!same) {
        buffer->content = MIXTURE;
    } else if (buffer->content == ANY) {
        buffer->content = content;
    }
}

static void fill(struct generator *g, int b, int format) {
    EMIT(g, RH_FILL, b, format, below(g, RH_INPUT_BYTES / 16) * 16);
    put(g, b, format, RH_BUFFER_BYTES);
}

/* A multiple of 16, all of a buffer in one of three cases. */
static int some_bytes(struct generator *g) {
    return below(g, 3) == 0 ? RH_BUFFER_BYTES : 16 * (1 + below(g, RH_BUFFER_BYTES / 16 - 1));
}

static int offset_for(struct generator *g, int all, int bytes) {
    return 16 * below(g, (all - bytes) / 16 + 1);
}

static void load(struct generator *g) {
    int b = free_buffer(g), format = below(g, RH_FORMATS), bytes = some_bytes(g);
    EMIT(g, RH_LOAD, b, offset_for(g, RH_BUFFER_BYTES, bytes),
         format * RH_INPUT_BYTES + offset_for(g, RH_INPUT_BYTES, bytes), bytes, below(g, 4));
    put(g, b, format, bytes);
    g->buffers[b].pending = true;
}

static int box_bytes(const struct rh_map *map) {
    uint32_t bytes = rh_bytes((enum rh_format)map->format);
    for (int d = 0; d < map->rank; d++) {
        bytes *= map->box[d];
    }
    return (int)bytes;
}

/* A buffer with boxes of two swizzles is no operand. */
static void put_swizzle(struct buffer *buffer, int swizzle) {
    if (swizzle != 0) {
        bool other = buffer->swizzle != 0 && buffer->swizzle != swizzle;
        buffer->content = other ? MIXTURE : buffer->content;
        buffer->swizzle = swizzle;
    }
}

static void load_box(struct generator *g) {
    int b = free_buffer(g), number = below(g, RH_MAPS), place[5] = {0};
    const struct rh_map *map = &g->program->maps[number];
    int unit = 16 / (int)rh_bytes((enum rh_format)map->format);
    for (int d = 0; d < map->rank; d++) {
        int least = -(int)map->box[d] / 2;
        place[d] = below(g, 3) == 0 ? least + below(g, (int)map->sizes[d] - least + 2)
                                    : below(g, (int)(map->sizes[d] - map->box[d]) + 1);
    }
    place[0] = place[0] / unit * unit; /* a row of a box begins at a multiple of 16 bytes */
    EMIT(g, RH_LOAD_BOX, b, number, box_bytes(map), below(g, 4), map->rank, place[0], place[1],
         place[2], place[3], place[4]);
    put(g, b, map->format, box_bytes(map));
    put_swizzle(&g->buffers[b], map->swizzle);
    g->buffers[b].pending = true;
}

static void multicast(struct generator *g) {
    int b = free_buffer(g), format = below(g, RH_FORMATS), bytes = some_bytes(g);
    sync_cluster(g);
    EMIT(g, RH_MULTICAST, b, format * RH_INPUT_BYTES + offset_for(g, RH_INPUT_BYTES, bytes), bytes,
         below(g, g->program->cluster));
    put(g, b, format, bytes);
    g->buffers[b].pending = true;
}

/* A matrix descriptor above its start, and how far it goes for the next 32 bytes or 16 of K. */
struct layout {
    uint32_t low, high, step;
};

static struct layout layout_of(uint32_t leading, uint32_t stride, uint32_t swizzle, uint32_t step) {
    return (struct layout){
        .low = leading / 16 << 16, .high = stride / 16 | swizzle << 30, .step = step / 16};
}

/* The bytes that a swizzle spans, by its number in descriptors: none, 128, 64, 32. */
static uint32_t width_of(int swizzle) {
    static const uint32_t widths[] = {16, 128, 64, 32};
    return widths[swizzle];
}

/* Of `rows` rows of M or N and `steps` steps of K; which of two orders is drawn. */
static struct layout draw_layout(struct generator *g, int swizzle, uint32_t rows, uint32_t steps,
                                 bool transposed) {
    uint32_t width = width_of(swizzle), core = 8 * width, groups = rows / 8;
    bool second = below(g, 2) != 0;
    if (!transposed && swizzle != 0) { /* eight rows of `width` bytes, one behind the other */
        uint32_t most = groups > 1 ? (RH_BUFFER_BYTES - core) / (groups - 1) / core : 1;
        return layout_of(16, core * (uint32_t)(1 + below(g, (int)most)), (uint32_t)swizzle, 32);
    }
    if (!transposed) { /* by rows, or by chunks of K */
        uint32_t leading = second ? core * groups : core;
        uint32_t stride = second ? core : core * 2 * steps;
        return layout_of(leading, stride, 0, 2 * leading);
    }
    uint32_t spans = swizzle != 0 ? rows * 2 / width : groups;
    uint32_t along_k = second ? core * spans : core, across = second ? core : core * 2 * steps;
    return swizzle != 0 ? layout_of(across, along_k, (uint32_t)swizzle, 2 * along_k)
                        : layout_of(along_k, across, 0, 2 * along_k);
}

/* A buffer that may be read as a format: one that is, or one that is filled. */
static int operand(struct generator *g, int format) {
    int first = below(g, RH_BUFFERS);
    for (int i = 0; i < RH_BUFFERS; i++) {
        int b = (first + i) % RH_BUFFERS;
        if (!g->buffers[b].pending && g->buffers[b].content == format) {
            return b;
        }
    }
    int b = free_buffer(g);
    fill(g, b, format);
    return b;
}

/* A descriptor has the swizzle of the boxes that it reads: @return its number, else the drawn one.
 */
static int swizzle_for(const struct generator *g, int b, int drawn) {
    int swizzle = g->buffers[b].swizzle;
    return swizzle == 0 ? drawn : 4 - swizzle;
}

static bool is_integer(int format) {
    return format == RH_S8 || format == RH_U8;
}

static void product(struct generator *g) {
    int form = below(g, RH_VARIANTS);
    form = g->limits->form < RH_VARIANTS ? (int)g->limits->form : form;
    const struct rh_variant *v = &rh_variants[form];
    int b = operand(g, v->format_b), a = v->from_registers ? b : operand(g, v->format_a);
    int swizzle_a = below(g, 4), swizzle_b = below(g, 4), steps = 1 + below(g, 4);
    swizzle_a = v->from_registers ? swizzle_a : swizzle_for(g, a, swizzle_a);
    swizzle_b = swizzle_for(g, b, swizzle_b);
    bool wide = rh_bytes((enum rh_format)v->format_a) == 2; /* only these are transposed */
    uint32_t most_a = wide && v->transposed_a ? 4 : width_of(swizzle_a) / 32;
    uint32_t most_b = wide && v->transposed_b ? 4 : width_of(swizzle_b) / 32;
    most_a = swizzle_a == 0 || v->from_registers ? 4 : most_a;
    most_b = swizzle_b == 0 ? 4 : most_b;
    uint32_t most = most_a < most_b ? most_a : most_b;
    steps = steps < (int)most ? steps : (int)most;
    struct layout in = draw_layout(g, swizzle_a, PRODUCT_ROWS, (uint32_t)steps, v->transposed_a);
    struct layout of_b =
        draw_layout(g, swizzle_b, (uint32_t)v->N, (uint32_t)steps, v->transposed_b);
    bool keeps = g->kept > 0 && below(g, 2) != 0;
    g->kept = keeps ? g->kept - 1 : MOST_KEPT;
    EMIT(g, RH_PRODUCT, form, a, b, (int)in.low, (int)in.high, (int)of_b.low, (int)of_b.high,
         (int)in.step, (int)of_b.step, steps, keeps, v->format_a, v->N / 2,
         is_integer(v->format_a));
}

static void read_buffer(struct generator *g) {
    int b = free_buffer(g);
    switch (below(g, 3)) {
    case 0:
        EMIT(g, RH_HASH, b);
        break;
    case 1:
        EMIT(g, RH_LDMATRIX, b, below(g, 2));
        break;
    default:
        sync_cluster(g);
        EMIT(g, RH_PEER_READ, b, below(g, g->program->cluster));
        sync_cluster(g);
    }
}

static void store(struct generator *g) {
    int b = free_buffer(g), bytes = some_bytes(g);
    enum { PART = 4096, OPERATIONS = 7 }; /* of what all blocks share */
    switch (below(g, 3)) {
    case 0:
        EMIT(g, RH_STORE, b, offset_for(g, RH_BUFFER_BYTES, bytes),
             offset_for(g, RH_OUTPUT_BYTES, bytes), bytes);
        break;
    case 1: /* nothing is stored from a negative place on */
        EMIT(g, RH_STORE_BOX, b, 4 * below(g, RH_OUT_COLUMNS / 4 + 4), below(g, RH_OUT_ROWS + 16));
        break;
    default:
        bytes = bytes < PART ? bytes : PART;
        EMIT(g, RH_REDUCE, b, offset_for(g, RH_BUFFER_BYTES, bytes), offset_for(g, PART, bytes),
             bytes, below(g, OPERATIONS));
    }
}

static void to_peer(struct generator *g) {
    int b = free_buffer(g), distance = below(g, g->program->cluster), bytes = some_bytes(g);
    struct buffer *buffer = &g->buffers[b];
    int source = (b + 1 + below(g, RH_BUFFERS - 1)) % RH_BUFFERS;
    bool adds = below(g, 3) == 0;
    switch (below(g, 4)) {
    case 0:
        sync_cluster(g);
        EMIT(g, RH_PEER_STORE, b, distance, below(g, 1 << 20), (int)(buffer->phases++ & 1));
        buffer->content = MIXTURE;
        break;
    case 1:
        sync_cluster(g);
        EMIT(g, RH_PEER_ATOMIC, b, distance, below(g, 1 << 20));
        sync_cluster(g);
        buffer->content = MIXTURE;
        break;
    default:
        wait_for(g, source);
        sync_cluster(g);
        EMIT(g, RH_PEER_COPY, b, source, bytes, distance, adds);
        put(g, b, adds ? MIXTURE : g->buffers[source].content, bytes);
        buffer->pending = true;
        wait_for(g, b);
        sync_cluster(g);
    }
}

static void others(struct generator *g) {
    int b = free_buffer(g);
    switch (below(g, 3)) {
    case 0:
        fill(g, b, below(g, RH_FORMATS));
        break;
    case 1:
        EMIT(g, RH_STMATRIX, b, below(g, 2), below(g, 1 << 20));
        g->buffers[b].content = MIXTURE;
        break;
    default:
        sync_cluster(g);
        EMIT(g, RH_ARRIVALS, below(g, g->program->cluster), (int)(g->rounds++ & 1));
    }
}

/* A tensor of rank 1 to 5 within an input, whose boxes fit into a buffer. A box's rows are as wide
   as the swizzle spans: of a narrower one the last chunks would land behind it. */
static void draw_map(struct generator *g, struct rh_map *map) {
    uint64_t extent;
    do {
        *map = (struct rh_map){
            .format = below(g, RH_FORMATS), .rank = 1 + below(g, 5), .swizzle = below(g, 4)};
        uint32_t bytes = rh_bytes((enum rh_format)map->format), room = RH_BUFFER_BYTES;
        uint32_t row = (uint32_t)16 << (map->swizzle == 0 ? below(g, 4) : map->swizzle);
        map->box[0] = row / bytes;
        map->sizes[0] = map->box[0] * (uint32_t)(1 + below(g, 3)) + (uint32_t)below(g, 5);
        extent = (map->sizes[0] * bytes + 15) / 16 * 16;
        room /= row;
        for (int d = 1; d < map->rank; d++) {
            map->sizes[d] = (uint32_t)(1 + below(g, map->rank < 3 ? 100 : 12));
            uint32_t most = map->sizes[d] < room ? map->sizes[d] : room;
            map->box[d] = (uint32_t)(1 + below(g, (int)most));
            room /= map->box[d];
            map->strides[d - 1] = extent + (uint64_t)(16 * below(g, 3));
            extent = map->strides[d - 1] * map->sizes[d];
        }
    } while (extent > RH_INPUT_BYTES);
}

void rh_generate(struct rh_program *program, uint64_t seed, const struct rh_limits *limits) {
    static void (*const families[RH_FAMILIES])(struct generator *) = {
        product, load, load_box, multicast, read_buffer, store, to_peer, others};
    struct generator g = {.rng = rng_create(seed), .program = program, .limits = limits};
    memset(program, 0, sizeof *program);
    program->cluster = 1 << below(&g, 3);
    program->blocks = program->cluster * (program->cluster < 4 ? 2 : 1);
    for (int n = 0; n < RH_MAPS; n++) {
        draw_map(&g, &program->maps[n]);
    }
    for (int b = 0; b < RH_BUFFERS; b++) {
        g.buffers[b].content = ANY;
    }
    int wanted = LEAST_OPERATIONS + below(&g, MORE_OPERATIONS);
    while (program->count < wanted) {
        int drawn = below(&g, RH_FAMILIES + 2) - 2; /* products three times as often as others */
        drawn = drawn < 0 ? 0 : drawn;
        families[limits->family < RH_FAMILIES ? limits->family : (uint64_t)drawn](&g);
    }
    for (int b = 0; b < RH_BUFFERS; b++) {
        wait_for(&g, b);
        EMIT(&g, RH_HASH, b);
    }
}
