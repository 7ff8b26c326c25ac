# Reduces what Nsight Compute counted to the columns of counted_h200.csv:
#
#   awk -f common/simt/calibration/counted.awk notebooks/results/h200/simt/calibration_ncu.csv \
#       notebooks/results/h200/simt/more_ncu.csv > common/simt/calibration/counted_h200.csv
BEGIN {
    FS = "\",\""
    load = "l1tex__t_%s_pipe_lsu_mem_global_op_ld%s.sum"
    store = "l1tex__t_%s_pipe_lsu_mem_global_op_st%s.sum"
    count = split(sprintf(load, "requests", "") " " sprintf(load, "sectors", "") " " \
        sprintf(load, "sectors", "_lookup_hit") " " sprintf(store, "requests", "") " " \
        sprintf(store, "sectors", "") " l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum" \
        " l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum" \
        " l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum" \
        " l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum" \
        " dram__bytes_read.sum dram__bytes_write.sum", columns, " ")
    print "set,kernel,load_requests,load_sectors,load_hit_sectors,store_requests,store_sectors," \
        "shared_load_wavefronts,shared_store_wavefronts,shared_load_conflicts," \
        "shared_store_conflicts,dram_read,dram_written"
}
FNR == 1 {
    set = set == "" ? "fit" : "more"
    delete at
    for (i = 1; i <= NF; i++) at[$i] = i
}
$1 ~ /^"[0-9]+$/ {
    name = $at["Kernel Name"]
    sub(/^void /, "", name)
    sub(/\(.*/, "", name)
    gsub(/,/, ";", name)
    line = set "," name
    for (i = 1; i <= count; i++) {
        if (!(columns[i] in at)) {
            print "no column " columns[i] > "/dev/stderr"
            exit 1
        }
        value = $at[columns[i]]
        gsub(/[,"]/, "", value)
        line = line "," value
    }
    print line
}
