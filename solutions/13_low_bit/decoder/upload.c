#include "solutions/13_low_bit/decoder/upload.h"

static enum status copy_up(void **to, const void *from, size_t bytes, device_stream stream,
                           struct error *error) {
    if (bytes == 0) {
        return STATUS_OK;
    }
    TRY(device_alloc(to, bytes, error));
    return device_write(*to, from, bytes, stream, error);
}

static enum status fill(struct low_bit_matrix *plain, const struct low_bit_matrix *matrix,
                        bool paired, const void **out, device_stream stream, struct error *error) {
    const struct low_bit_layout *l = &matrix->layout;
    void *prepared;
    TRY(low_bit_check(l, error));
    TRY(copy_up(&plain->values, matrix->values, low_bit_values_bytes(l), stream, error));
    TRY(copy_up(&plain->scales, matrix->scales, low_bit_scales_bytes(l), stream, error));
    TRY(copy_up((void **)&plain->zeros, matrix->zeros, low_bit_zeros_bytes(l), stream, error));
    TRY(device_alloc(&prepared, low_bit_decoder_prepared_bytes(l, paired), error));
    *out = prepared;
    TRY(low_bit_decoder_prepare(plain, paired, prepared, stream, error));
    return device_synchronize(stream, error);
}

enum status low_bit_decoder_upload(const struct low_bit_matrix *matrix, bool paired,
                                   const void **out, device_stream stream, struct error *error) {
    struct low_bit_matrix plain = {.layout = matrix->layout};
    *out = NULL;
    enum status status = fill(&plain, matrix, paired, out, stream, error);
    device_free(plain.values);
    device_free(plain.scales);
    device_free(plain.zeros);
    if (status != STATUS_OK) {
        device_free((void *)*out);
        *out = NULL;
    }
    return status;
}
