#include "common/simt/runtime/xray/xray_page.h"

#include "common/simt/page/page.h"

/** What the page's data is made of. */
struct data {
    const struct xray *xray;
    const struct simt_gpu *gpu;
};

static void print_data(const void *argument, FILE *stream) {
    const struct data *data = argument;
    xray_print_json(data->xray, data->gpu, stream);
}

void xray_print_page(const struct xray *xray, const struct simt_gpu *gpu, FILE *stream) {
    page_print(print_data, &(struct data){xray, gpu}, stream);
}

enum status xray_write(const struct xray *xray, const struct simt_gpu *gpu, const char *path,
                       struct error *error) {
    return page_write(print_data, &(struct data){xray, gpu}, path, error);
}
