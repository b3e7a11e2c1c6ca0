package harness

import (
	"net"
	"os/exec"
	"strings"
	"testing"
)

func TestNamespace(t *testing.T) {
	n, err := NewNamespace()
	if err != nil {
		t.Skip(err)
	}
	defer n.Close()
	to, got := echo(t)
	// The same address in the namespace leads there by the proxy alone.
	var l net.Listener
	if err := n.Do(func() (err error) { l, err = net.Listen("tcp", to); return err }); err != nil {
		t.Fatal(err)
	}
	p := NewProxy(l, to)
	defer p.Close()
	var c net.Conn
	if err := n.Do(func() (err error) { c, err = net.Dial("tcp", to); return err }); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	write(t, c, "one")
	read(t, c, "one")
	<-got

	host, port, _ := net.SplitHostPort(to)
	cmd := exec.Command("bash", "-c", "exec 3<>/dev/tcp/"+host+"/"+port+" && echo -n two >&3 && head -c 3 <&3")
	var out strings.Builder
	cmd.Stdout = &out
	if err := n.Do(cmd.Start); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || out.String() != "two" {
		t.Errorf("the process in the namespace read %q, %v", out.String(), err)
	}
}
