stack='Go, vendor/'
repository=vbatts/go-mtree
commit=211499493840d1cd8f2f3eebf80f1b3b68383bbb
install() { true; }
check() { go test ./...; }
honest() {
    printf '\n// more\n' >>keywords.go
    printf 'package mtree\n\nimport "testing"\n\nfunc TestReal(t *testing.T) {}\n' >real_test.go
}
broken() { sed -i 's/SplitN(string(k), ".", 2)\[0\]/SplitN(string(k), ".", 2)[1]/' keywords.go; }
dependency() {
    go get github.com/google/uuid@v1.6.0
    printf 'package mtree\n\nimport "github.com/google/uuid"\n\nfunc isUUID(text string) bool { return uuid.Validate(text) == nil }\n' >uuid.go
    printf 'package mtree\n\nimport "testing"\n\nfunc TestIsUUID(t *testing.T) {\n\tif isUUID("no") {\n\t\tt.Fatal()\n\t}\n}\n' >uuid_test.go
    go mod tidy && go mod vendor
}
