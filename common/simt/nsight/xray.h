/**
 * @file xray.h
 * @brief The program `xray`, which is also the command `simt xray`.
 */
#ifndef WARPBOOK_COMMON_SIMT_NSIGHT_XRAY_H_
#define WARPBOOK_COMMON_SIMT_NSIGHT_XRAY_H_

/** @param program what messages and --help call it. @return the exit status */
int xray_command(const char *program, int argc, char **argv);

#endif
