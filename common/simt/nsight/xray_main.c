/* bazel run //common/simt:xray -- --from report.ncu-rep --output out.html */
#include "common/base/file.h"
#include "common/simt/nsight/xray.h"

int main(int argc, char **argv) {
    file_enter_working_directory();
    return xray_command("xray", argc, argv);
}
