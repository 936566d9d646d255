package rnic

import "strconv"

// driverNames maps enum rdma_driver_id of <rdma/ib_user_ioctl_verbs.h>, which
// libibverbs matches its providers by, to the drivers' own names.
var driverNames = []string{
	"", "mlx5", "mlx4", "cxgb3", "cxgb4", "mthca", "bnxt_re", "ocrdma", "nes", "irdma", "vmw_pvrdma",
	"qedr", "hns", "usnic", "rxe", "hfi1", "qib", "efa", "siw", "erdma", "mana", "ionic",
}

func driverName(id uint32) string {
	if int(id) < len(driverNames) {
		return driverNames[id]
	}
	return "driver(" + strconv.FormatUint(uint64(id), 10) + ")"
}
