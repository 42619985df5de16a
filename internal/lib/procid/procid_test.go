package procid

import (
	"os"
	"testing"
)

func TestAlive(t *testing.T) {
	t.Parallel()
	self := Self()
	if self.PID != os.Getpid() || !self.Alive() {
		t.Errorf("this process, %+v, is not alive", self)
	}
	if !(ID{PID: self.PID}).Alive() {
		t.Error("a process named by its number only is not alive")
	}
	if self.Start != "" && (ID{self.PID, self.Start + "1"}).Alive() {
		t.Error("a process that had our number before us is alive")
	}
	if (ID{PID: 0}).Alive() || (ID{PID: 1 << 30}).Alive() {
		t.Error("a process that never was is alive")
	}
}
